"""The tables of a new store in SQLAlchemy Core; `migrations` brings older stores up to them.

Keys are natural (run, number within it), not sequences, so publishing twice gives the same rows.
Values that are read as a whole (histograms, offsets) are JSON; values to search by are columns.
A new member of a closed list (verdicts, reasons) needs a migration, even if it is empty: versions
that do not know the member then refuse the store.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

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
from sqlalchemy.types import TypeEngine

from mm2slo_core.audit.unit_outcome import Evidence, PartitionOutcome, ReplayEvent
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import Completion, Run, RunDirectory, StoredUnit
from mm2slo_store.row_conversion import NOT_IN_UNIT_ROW, StoredField, stored_fields

REVISION: Final = "0001"
"""The newest migration. Compared on open without loading Alembic."""
VERSION_TABLE: Final = "mm2slo_schema_version"

metadata = MetaData()

_SQL_TYPES: Final = {bool: Boolean, int: BigInteger, float: Double, str: String, Flow: String}

_SMALL: Final = frozenset(
    {"unit", "flow", "partition", "other_partition", "exit_code", "superseded_units"}
)
"""Columns of 32 bits; all other whole numbers (offsets, times, bytes, hashes) have 64."""


def _columns(kind: type, *, without: Sequence[str] = ()) -> Iterator[Column[Any]]:
    """The columns of the fields of *kind*, as in `row_conversion`, except those *without*."""
    for each in stored_fields(kind):
        if each.is_flat:
            yield from _columns(each.kind)
        elif each.name not in without:
            yield Column(each.column, _sql_type(each), nullable=each.optional)


def _sql_type(field: StoredField) -> type[TypeEngine[Any]]:
    if field.column in _SMALL and field.kind is int:
        return Integer
    is_text = isinstance(field.kind, type) and issubclass(field.kind, str)
    return String if is_text else _SQL_TYPES.get(field.kind, JSON)


def _moved(columns: Iterable[Column[Any]], **after: str) -> list[Column[Any]]:
    """*columns* with some of them behind another one: name=predecessor.

    Fields are ordered for readers; the columns of existing stores are not.
    """
    ordered = list(columns)
    for name, predecessor in after.items():
        (column,) = [each for each in ordered if each.name == name]
        ordered.remove(column)
        names = [each.name for each in ordered]
        ordered.insert(names.index(predecessor) + 1, column)
    return ordered


runs = Table(
    "audit_runs",
    metadata,
    *_moved(_columns(Run), state="id", finished_at="started_at"),
    PrimaryKeyConstraint("id", name="pk_audit_runs"),
    Index("ix_audit_runs_started_at", "started_at"),
)

units = Table(
    "audit_units",
    metadata,
    *_moved(
        (
            *_columns(StoredUnit, without=NOT_IN_UNIT_ROW),
            Column("target_cluster", String, nullable=False),
            Column("target_topic", String, nullable=False),
            Column("flow_set", String, nullable=False),
            Column("judged", Boolean, nullable=False),
            Column("reason", String),
            Column("detail", String),
            Column("scope", JSON, nullable=False),
        ),
        target_cluster="unit",
        target_topic="target_cluster",
        flow_set="target_topic",
        judged="window_end",
        reason="judged",
        detail="reason",
        key_cells="scope",
    ),
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
    *_moved(
        _columns(PartitionOutcome, without=("flow",)),
        without_bracket="source_bytes",
    ),
    key=("flow", "partition"),
)

evidence = _of_unit(
    "audit_evidence",
    Column("number", Integer, nullable=False),
    *_columns(Evidence),
    key=("number",),
)

replays = _of_unit(
    "audit_replays",
    Column("number", Integer, nullable=False),
    *_columns(ReplayEvent),
    key=("number",),
)

directories = _of_unit(
    "audit_directories",
    Column("number", Integer, nullable=False),
    *_columns(RunDirectory),
    key=("number",),
)
Index("ix_audit_directories_path", directories.c.path)

completions = Table(
    "audit_completions",
    metadata,
    *_columns(Completion),
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
    *_moved(_columns(Exclusion), removed_by="added_at"),
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
