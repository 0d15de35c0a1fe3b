"""The tables of the history. `migrations/versions/v0004_sli_history.py` creates them.

Rows lie in order of their hour: a minute's write changes neighbours, and a report reads the rows
of the few hours in which its spans start or end.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from mm2slo_store.schema import metadata

indicators = Table(
    "sli_indicators",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("source", String, nullable=False),
    Column("target", String, nullable=False),
    Column("sli", String, nullable=False),
    Column("tier", String, nullable=False),
    Column("first_at", BigInteger),
    Column("detailed_from", Integer),
    PrimaryKeyConstraint("id", name="pk_sli_indicators"),
    UniqueConstraint("source", "target", "sli", "tier", name="uq_sli_indicators_names"),
)
"""`first_at`: the first minute with a sample, epoch ms; `detailed_from`: no hour before it, in
hours since the epoch, has minutes left to fold. Both are null without history."""

hours = Table(
    "sli_hours",
    metadata,
    Column("hour", Integer, nullable=False),
    Column("indicator", Integer, nullable=False),
    Column("good", Double, nullable=False),
    Column("total", Double, nullable=False),
    Column("unknown", Double, nullable=False),
    Column("minutes_before", Integer, nullable=False),
    Column("minutes", BigInteger, nullable=False),
    Column("folded", Boolean, nullable=False),
    Column("growths", LargeBinary, nullable=False),
    PrimaryKeyConstraint("hour", "indicator", name="pk_sli_hours"),
    ForeignKeyConstraint(["indicator"], ["sli_indicators.id"], name="fk_sli_hours_indicator"),
    Index("ix_sli_hours_indicator_hour", "indicator", "hour"),
    sqlite_with_rowid=False,
)
"""See `hour.Hour`, whose fields are these columns."""

counters = Table(
    "sli_counters",
    metadata,
    Column("replica", String, nullable=False),
    Column("indicator", Integer, nullable=False),
    Column("scraped_at", BigInteger, nullable=False),
    Column("good", Double, nullable=False),
    Column("total", Double, nullable=False),
    Column("unknown", Double, nullable=False),
    Column("started_at", BigInteger),
    PrimaryKeyConstraint("replica", "indicator", name="pk_sli_counters"),
    ForeignKeyConstraint(["indicator"], ["sli_indicators.id"], name="fk_sli_counters_indicator"),
)
