"""The tables of a new store in SQLAlchemy Core; `migrations` brings older stores up to them.

Keys are natural (run, number within it), not sequences, so publishing twice gives the same rows.
Values that are read as a whole (histograms, offsets) are JSON; values to search by are columns.
A new member of a closed list (verdicts, reasons) needs a migration, even if it is empty: versions
that do not know the member then refuse the store.
"""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

REVISION: Final = "0001"
"""The newest migration. Compared on open without loading Alembic."""
VERSION_TABLE: Final = "mm2slo_schema_version"

NO_FLOW: Final = -1
"""`flow` of rows about the target only; a key column cannot be null."""
metadata = MetaData()

runs = Table(
    "audit_runs",
    metadata,
    Column("id", String, nullable=False),
    Column("state", String, nullable=False),
    Column("flows", JSON, nullable=False),
    Column("window_start", BigInteger, nullable=False),
    Column("window_end", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("sample_rate", Double, nullable=False),
    Column("salt", BigInteger, nullable=False),
    Column("config_hash", String, nullable=False),
    Column("versions", JSON, nullable=False),
    Column("exit_code", Integer),
    Column("verdict_line", String),
    Column("complete_up_to", BigInteger),
    Column("bytes_read", BigInteger),
    Column("superseded_units", Integer, nullable=False),
    PrimaryKeyConstraint("id", name="pk_audit_runs"),
    Index("ix_audit_runs_started_at", "started_at"),
)

units = Table(
    "audit_units",
    metadata,
    Column("run_id", String, nullable=False),
    Column("unit", Integer, nullable=False),
    Column("target_cluster", String, nullable=False),
    Column("target_topic", String, nullable=False),
    Column("flow_set", String, nullable=False),
    Column("window_start", BigInteger, nullable=False),
    Column("window_end", BigInteger, nullable=False),
    Column("judged", Boolean, nullable=False),
    Column("reason", String),
    Column("detail", String),
    Column("comparison", String, nullable=False),
    Column("target_time", String, nullable=False),
    Column("keyed", Boolean, nullable=False),
    Column("counts", JSON, nullable=False),
    Column("copied_again", BigInteger, nullable=False),
    Column("source_bytes", BigInteger, nullable=False),
    Column("without_bracket", BigInteger, nullable=False),
    Column("end_to_end", JSON, nullable=False),
    Column("transfer", JSON, nullable=False),
    Column("keys", BigInteger, nullable=False),
    Column("keys_split", BigInteger, nullable=False),
    Column("keys_disordered", BigInteger, nullable=False),
    Column("records_moved", BigInteger, nullable=False),
    Column("broken_keys", JSON, nullable=False),
    Column("oldest_open", BigInteger),
    Column("order_judged", Boolean, nullable=False),
    Column("bounds", JSON, nullable=False),
    Column("scope", JSON, nullable=False),
    Column("key_cells", JSON, nullable=False),
    PrimaryKeyConstraint("run_id", "unit", name="pk_audit_units"),
    ForeignKeyConstraint(["run_id"], ["audit_runs.id"], name="fk_audit_units_run"),
    UniqueConstraint(
        "target_cluster",
        "target_topic",
        "flow_set",
        "window_start",
        "window_end",
        "judged",
        name="uq_audit_units_key",
    ),
)


def _of_unit(name: str, *columns: Column[object], key: tuple[str, ...]) -> Table:
    """A table whose rows belong to a unit."""
    return Table(
        name,
        metadata,
        Column("run_id", String, nullable=False),
        Column("unit", Integer, nullable=False),
        *columns,
        PrimaryKeyConstraint("run_id", "unit", *key, name=f"pk_{name}"),
        ForeignKeyConstraint(
            ["run_id", "unit"],
            ["audit_units.run_id", "audit_units.unit"],
            name=f"fk_{name}_unit",
        ),
    )


unit_flows = _of_unit(
    "audit_unit_flows",
    Column("flow", Integer, nullable=False),
    Column("label", String, nullable=False),
    Column("source_topic", String),
    key=("flow",),
)

partitions = _of_unit(
    "audit_partitions",
    Column("flow", Integer, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("counts", JSON, nullable=False),
    Column("source_bytes", BigInteger, nullable=False),
    Column("without_bracket", BigInteger, nullable=False),
    Column("end_to_end", JSON, nullable=False),
    Column("transfer", JSON, nullable=False),
    key=("flow", "partition"),
)

evidence = _of_unit(
    "audit_evidence",
    Column("number", Integer, nullable=False),
    Column("verdict", String, nullable=False),
    Column("side", String, nullable=False),
    Column("flow", Integer, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("record_offset", BigInteger, nullable=False),
    Column("record_timestamp", BigInteger, nullable=False),
    Column("fingerprint", BigInteger, nullable=False),
    Column("key_hash", BigInteger),
    Column("other_partition", Integer),
    Column("other_offset", BigInteger),
    Column("block", BigInteger),
    key=("number",),
)

replays = _of_unit(
    "audit_replays",
    Column("number", Integer, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("start_offset", BigInteger, nullable=False),
    Column("end_offset", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    key=("number",),
)

directories = _of_unit(
    "audit_directories",
    Column("number", Integer, nullable=False),
    Column("path", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    key=("number",),
)
Index("ix_audit_directories_path", directories.c.path)

completions = Table(
    "audit_completions",
    metadata,
    Column("flow", String, nullable=False),
    Column("target_topic", String, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("up_to", BigInteger, nullable=False),
    Column("run_id", String, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("flow", "target_topic", name="pk_audit_completions"),
)

leases = Table(
    "audit_leases",
    metadata,
    Column("target_cluster", String, nullable=False),
    Column("target_topic", String, nullable=False),
    Column("holder", String, nullable=False),
    Column("acquired_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("target_cluster", "target_topic", name="pk_audit_leases"),
)

digests = Table(
    "digests",
    metadata,
    Column("period", String, nullable=False),
    Column("channel", String, nullable=False),
    Column("claimed_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("ts", String),
    PrimaryKeyConstraint("period", "channel", name="pk_digests"),
)
exclusions = Table(
    "exclusions",
    metadata,
    Column("id", String, nullable=False),
    Column("flows", JSON, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Column("reason", String, nullable=False),
    Column("added_by", String, nullable=False),
    Column("added_at", BigInteger, nullable=False),
    Column("removed_by", String),
    Column("removed_at", BigInteger),
    Column("silence", String),
    PrimaryKeyConstraint("id", name="pk_exclusions"),
    Index("ix_exclusions_start_at", "start_at"),
)

OF_UNIT: Final = (unit_flows, partitions, evidence, replays, directories)
"""Tables whose rows are deleted with their unit."""

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
