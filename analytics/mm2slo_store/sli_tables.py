"""The tables of the SLI history."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKeyConstraint,
    Integer,
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
    PrimaryKeyConstraint("id", name="pk_sli_indicators"),
    UniqueConstraint("source", "target", "sli", "tier", name="uq_sli_indicators_names"),
)

steps = Table(
    "sli_steps",
    metadata,
    Column("indicator", Integer, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Column("good", Double, nullable=False),
    Column("bad", Double, nullable=False),
    Column("unknown", Double, nullable=False),
    PrimaryKeyConstraint("indicator", "end_at", name="pk_sli_steps"),
    ForeignKeyConstraint(["indicator"], ["sli_indicators.id"], name="fk_sli_steps_indicator"),
    sqlite_with_rowid=False,
)
"""The events of five minutes; steps that were not measured have no row."""

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
"""Counters as they were scraped last."""
