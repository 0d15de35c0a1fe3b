"""Rows that only SQL reads: outcomes of units with their partitions, and run directories."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table, select

from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    Evidence,
    PartitionOutcome,
    ReplayEvent,
    UnitOutcome,
)
from mm2slo_store import store_schema
from mm2slo_store.audit_rows import RunDirectory
from mm2slo_store.row_conversion import NO_FLOW, decode_scope, from_row
from mm2slo_store.store import Store


def stored_outcome(store: Store, run_id: str, unit: int) -> UnitOutcome:
    """The published outcome of a judged unit."""
    (row,) = _rows(store, store_schema.units, run_id=run_id, unit=unit)
    partitions = _rows(store, store_schema.partitions, run_id=run_id, unit=unit)
    evidence = _rows(store, store_schema.evidence, run_id=run_id, unit=unit)
    replays = _rows(store, store_schema.replays, run_id=run_id, unit=unit)
    return UnitOutcome(
        scope=decode_scope(row["scope"]),
        partitions=tuple(
            from_row(
                PartitionOutcome,
                each,
                flow=None if each["flow"] == NO_FLOW else each["flow"],
            )
            for each in partitions
        ),
        affinity=from_row(AffinityOutcome, row),
        copied_again=row["copied_again"],
        replays=tuple(from_row(ReplayEvent, each) for each in replays),
        evidence=tuple(from_row(Evidence, each) for each in evidence),
        oldest_open=row["oldest_open"],
        order_judged=row["order_judged"],
    )


def stored_directories(store: Store, **key: object) -> tuple[RunDirectory, ...]:
    """The run directories that stored runs reference."""
    rows = _rows(store, store_schema.directories, **key)
    return tuple(from_row(RunDirectory, each) for each in rows)


def _rows(store: Store, table: Table, **key: object) -> Sequence[Mapping[Any, Any]]:
    query = select(table).order_by(*table.primary_key)
    query = query.where(*(table.c[name] == value for name, value in key.items()))
    with store._reading() as connection:
        return connection.execute(query).mappings().all()
