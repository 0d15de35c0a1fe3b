"""SLI history by hours and minutes; digest claims."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "sli_indicators",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("sli", sa.String, nullable=False),
        sa.Column("tier", sa.String, nullable=False),
        sa.Column("first_at", sa.BigInteger),
        sa.Column("detailed_from", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_sli_indicators"),
        sa.UniqueConstraint("source", "target", "sli", "tier", name="uq_sli_indicators_names"),
    )
    op.create_table(
        "sli_hours",
        sa.Column("hour", sa.Integer, nullable=False),
        sa.Column("indicator", sa.Integer, nullable=False),
        sa.Column("good", sa.Double, nullable=False),
        sa.Column("total", sa.Double, nullable=False),
        sa.Column("unknown", sa.Double, nullable=False),
        sa.Column("minutes_before", sa.Integer, nullable=False),
        sa.Column("minutes", sa.BigInteger, nullable=False),
        sa.Column("folded", sa.Boolean, nullable=False),
        sa.Column("growths", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("hour", "indicator", name="pk_sli_hours"),
        sa.ForeignKeyConstraint(
            ["indicator"], ["sli_indicators.id"], name="fk_sli_hours_indicator"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sli_hours_indicator_hour", "sli_hours", ["indicator", "hour"])
    op.create_table(
        "sli_counters",
        sa.Column("replica", sa.String, nullable=False),
        sa.Column("indicator", sa.Integer, nullable=False),
        sa.Column("scraped_at", sa.BigInteger, nullable=False),
        sa.Column("good", sa.Double, nullable=False),
        sa.Column("total", sa.Double, nullable=False),
        sa.Column("unknown", sa.Double, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("replica", "indicator", name="pk_sli_counters"),
        sa.ForeignKeyConstraint(
            ["indicator"], ["sli_indicators.id"], name="fk_sli_counters_indicator"
        ),
    )
    op.create_table(
        "digests",
        sa.Column("period", sa.String, nullable=False),
        sa.Column("channel", sa.String, nullable=False),
        sa.Column("claimed_at", sa.BigInteger, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
        sa.Column("ts", sa.String),
        sa.PrimaryKeyConstraint("period", "channel", name="pk_digests"),
    )
