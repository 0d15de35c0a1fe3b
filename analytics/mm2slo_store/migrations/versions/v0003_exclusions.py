"""Exclusions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "exclusions",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("flows", sa.JSON, nullable=False),
        sa.Column("start_at", sa.BigInteger, nullable=False),
        sa.Column("end_at", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("added_by", sa.String, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.Column("removed_by", sa.String),
        sa.Column("removed_at", sa.BigInteger),
        sa.Column("silence", sa.String),
        sa.PrimaryKeyConstraint("id", name="pk_exclusions"),
    )
    op.create_index("ix_exclusions_start_at", "exclusions", ["start_at"])
