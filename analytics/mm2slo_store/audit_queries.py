"""Queries of audits on an open connection."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Text, and_, cast, exists, func, select, tuple_

from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.topology import Flow
from mm2slo_store import schema
from mm2slo_store.audit_rows import (
    Completion,
    RunState,
    StoredEvidence,
)
from mm2slo_store.json_encoding import decode_scope, dumps
from mm2slo_store.row_conversion import (
    directory_from_row,
    evidence_from_row,
    outcome_from_rows,
    run_from_row,
    stored_unit,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import ColumnElement, Connection, FromClause, Select, Table

    from mm2slo_core.audit.audit_scope import UnitScope, Window
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_store.audit_rows import Run, RunDirectory, RunPlace, StoredUnit, UnitKey

OPEN_VERDICTS: Final = (Verdict.LOST, Verdict.OVERDUE, Verdict.LATE)
"""Verdicts of records that are or were unmatched. Late is one: a third run reports late again."""
_MAX_PARAMETERS: Final = 500
"""Parameters of one statement; SQLite allows 32,766, older versions 999."""


@dataclass(frozen=True, slots=True)
class UnitFilter:
    """Selects units; None: any."""

    run_id: str | None = None
    unit: int | None = None
    flow: Flow | None = None
    target_topic: str | None = None
    overlapping: Window | None = None
    judged: bool | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The filter in SQL, on `schema.units`."""
        columns = schema.units.c
        found: list[ColumnElement[bool]] = []
        if self.run_id is not None:
            found.append(columns.run_id == self.run_id)
        if self.unit is not None:
            found.append(columns.unit == self.unit)
        if self.target_topic is not None:
            found.append(columns.target_topic == self.target_topic)
        if self.judged is not None:
            found.append(columns.judged == self.judged)
        if self.overlapping is not None:
            found += _overlaps(self.overlapping)
        if self.flow is not None:
            of_flow = schema.unit_flows.alias()
            found.append(exists().where(_same_unit(of_flow), of_flow.c.label == self.flow.label))
        return found


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects runs; None: any. `after`: those that follow that place in the list."""

    run_id: str | None = None
    flow: Flow | None = None
    state: RunState | None = None
    after: RunPlace | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The filter in SQL, on `schema.runs`."""
        columns = schema.runs.c
        found: list[ColumnElement[bool]] = []
        if self.run_id is not None:
            found.append(columns.id == self.run_id)
        if self.state is not None:
            found.append(columns.state == self.state.value)
        if self.after is not None:
            found.append(tuple_(columns.started_at, columns.id) < tuple_(*self.after))
        if self.flow is not None:
            # Matches the JSON text: dialects differ in JSON lists, and SQLite's LIKE ignores case.
            text = cast(columns.flows, Text)
            found.append(func.replace(text, dumps(self.flow.label), "") != text)
        return found


def runs(connection: Connection, wanted: RunFilter, *, limit: int | None = None) -> tuple[Run, ...]:
    """Runs, newest first."""
    query = _newest_first(select(schema.runs)).where(*wanted.conditions()).limit(limit)
    return tuple(map(run_from_row, connection.execute(query).mappings()))


def runs_by_id(connection: Connection, run_ids: Collection[str]) -> tuple[Run, ...]:
    """The stored runs of *run_ids*, newest first."""
    query = _newest_first(select(schema.runs))
    # In batches; at most as many runs as units in a report's window.
    ordered = sorted(run_ids)
    found: list[Run] = []
    for start in range(0, len(ordered), _MAX_PARAMETERS):
        part = query.where(schema.runs.c.id.in_(ordered[start : start + _MAX_PARAMETERS]))
        found += map(run_from_row, connection.execute(part).mappings())
    return tuple(
        sorted(found, key=lambda run: (run.header.started_at, run.header.id), reverse=True)
    )


def count_runs(connection: Connection, wanted: RunFilter) -> Mapping[RunState, int]:
    """The number of runs by state."""
    columns = schema.runs.c
    query = select(columns.state, func.count().label("number"))
    rows = connection.execute(query.where(*wanted.conditions()).group_by(columns.state))
    found = {row.state: row.number for row in rows}
    return {state: found.get(state.value, 0) for state in RunState}


def newest_finished(connection: Connection, flows: Collection[Flow]) -> Mapping[Flow, Run]:
    """The newest finished run of each of *flows* that has one, in their order."""
    columns, missing = schema.runs.c, {flow.label: flow for flow in flows}
    query = _newest_first(select(columns.id, columns.flows))
    newest: dict[Flow, str] = {}
    for run_id, labels in connection.execute(query.where(columns.state == RunState.FINISHED.value)):
        for label in missing.keys() & set(labels):
            newest[missing.pop(label)] = run_id
        if not missing:
            break
    known = {run.header.id: run for run in runs_by_id(connection, set(newest.values()))}
    return {flow: known[newest[flow]] for flow in flows if flow in newest}


def units(connection: Connection, wanted: UnitFilter) -> tuple[StoredUnit, ...]:
    """Units in order of window, topic and run."""
    columns = schema.units.c
    # The scope can be large, and no summary needs it.
    selected = [column for column in columns if column is not columns.scope]
    query = (
        select(*selected, schema.unit_flows.c.label, schema.unit_flows.c.source_topic)
        .join(schema.unit_flows, _same_unit(schema.unit_flows))
        .where(*wanted.conditions())
        .order_by(
            columns.window_start,
            columns.window_end,
            columns.target_topic,
            columns.run_id,
            columns.unit,
            schema.unit_flows.c.flow,
        )
    )
    found = connection.execute(query).mappings()
    grouped = (
        list(rows) for _, rows in groupby(found, key=lambda row: (row["run_id"], row["unit"]))
    )
    return tuple(stored_unit(rows[0], rows) for rows in grouped)


def outcome(connection: Connection, run_id: str, unit: int) -> UnitOutcome | None:
    """The published outcome of a judged unit; None: unknown unit."""
    found = UnitFilter(run_id=run_id, unit=unit, judged=True).conditions()
    row = connection.execute(select(schema.units).where(*found)).mappings().first()
    if row is None:
        return None
    return outcome_from_rows(
        row,
        _rows_of_unit(connection, schema.partitions, run_id, unit, order=("flow", "partition")),
        _rows_of_unit(connection, schema.evidence, run_id, unit, order=("number",)),
        _rows_of_unit(connection, schema.replays, run_id, unit, order=("number",)),
    )


def evidence(
    connection: Connection,
    wanted: UnitFilter,
    *,
    verdicts: Collection[Verdict] = (),
    limit: int | None = None,
    start: int = 0,
) -> tuple[StoredEvidence, ...]:
    """Anomalies in order of window, unit and number; without the first *start* of them."""
    table, columns, flows = schema.evidence, schema.units.c, schema.unit_flows
    query = (
        select(table, columns.target_topic, flows.c.label)
        .join(schema.units, _same_unit(table))
        .join(
            flows,
            and_(
                flows.c.run_id == table.c.run_id,
                flows.c.unit == table.c.unit,
                flows.c.flow == table.c.flow,
            ),
        )
        .where(*wanted.conditions())
        .order_by(columns.window_start, table.c.run_id, table.c.unit, table.c.number)
        .limit(limit)
        .offset(start or None)
    )
    if verdicts:
        query = query.where(table.c.verdict.in_([each.value for each in verdicts]))
    return tuple(
        StoredEvidence(
            run_id=row["run_id"],
            unit=row["unit"],
            target_topic=row["target_topic"],
            flow=Flow.parse(row["label"]),
            evidence=evidence_from_row(row),
        )
        for row in connection.execute(query).mappings()
    )


def count_evidence(connection: Connection, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
    """The number of anomalies in evidence by unit and verdict."""
    columns = schema.evidence.c
    query = (
        select(columns.unit, columns.verdict, func.count().label("number"))
        .where(columns.run_id == run_id)
        .group_by(columns.unit, columns.verdict)
    )
    found: dict[int, dict[Verdict, int]] = {}
    for unit, verdict, number in connection.execute(query):
        found.setdefault(unit, {})[Verdict(verdict)] = number
    return found


def directories(connection: Connection, run_id: str | None) -> tuple[RunDirectory, ...]:
    """The run directories of one run or of all."""
    table = schema.directories
    query = select(table).order_by(table.c.run_id, table.c.unit, table.c.number)
    if run_id is not None:
        query = query.where(table.c.run_id == run_id)
    return tuple(map(directory_from_row, connection.execute(query).mappings()))


def completion(connection: Connection, flow: Flow, target_topic: str) -> Completion | None:
    """How far a topic of a flow is complete; None: never judged."""
    table = schema.completions
    query = select(table).where(table.c.flow == flow.label, table.c.target_topic == target_topic)
    row = connection.execute(query).first()
    if row is None:
        return None
    return Completion(flow, target_topic, row.start_at, row.up_to, row.run_id, row.updated_at)


def open_scopes(connection: Connection, key: UnitKey, window: Window) -> tuple[UnitScope, ...]:
    """Scopes of stored units with lost, overdue or late records, fed by a flow of *key*."""
    columns, flows = schema.units.c, schema.unit_flows
    query = (
        select(columns.scope, columns.counts)
        .where(
            columns.target_cluster == key.target_cluster,
            columns.target_topic == key.target_topic,
            columns.judged,
            *_overlaps(window),
            exists().where(
                _same_unit(flows), flows.c.label.in_([flow.label for flow in key.flows])
            ),
        )
        .order_by(columns.run_id, columns.unit)
    )
    return tuple(
        decode_scope(scope)
        for scope, counts in connection.execute(query)
        if any(counts.get(each.value) for each in OPEN_VERDICTS)
    )


def _rows_of_unit(
    connection: Connection, table: Table, run_id: str, unit: int, *, order: tuple[str, ...]
) -> list[Mapping[Any, Any]]:
    query = (
        select(table)
        .where(table.c.run_id == run_id, table.c.unit == unit)
        .order_by(*(table.c[each] for each in order))
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _same_unit(table: FromClause) -> ColumnElement[bool]:
    return and_(table.c.run_id == schema.units.c.run_id, table.c.unit == schema.units.c.unit)


def _overlaps(window: Window) -> list[ColumnElement[bool]]:
    columns = schema.units.c
    return [columns.window_start < window.end, columns.window_end > window.start]


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(schema.runs.c.started_at.desc(), schema.runs.c.id.desc())
