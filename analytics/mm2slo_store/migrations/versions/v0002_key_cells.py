"""The audit: sizes of sampled keys, for rates per record. Null in older rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("audit_units", sa.Column("key_cells", sa.JSON))
