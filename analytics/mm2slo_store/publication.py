"""Audit runs in an open store: announces them, and publishes each in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Table, bindparam, delete, exists, insert, select, update

from mm2slo_core.audit.audit_scope import NotAuditedReason
from mm2slo_core.audit.conclusion import complete_up_to
from mm2slo_store import schema
from mm2slo_store.audit_rows import Published, RunState
from mm2slo_store.completion_span import CompletionSpan, extend_completion, skip_window
from mm2slo_store.leases import refuse_if_taken
from mm2slo_store.open_store import OpenStore
from mm2slo_store.row_conversion import (
    Row,
    UnitRows,
    failed_row,
    header_row,
    judged_rows,
    run_row,
    unjudged_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection

    from mm2slo_core.topology import Flow
    from mm2slo_store.audit_rows import AuditRun, JudgedUnit, RunHeader, UnjudgedUnit

_KEY = ("target_cluster", "target_topic", "flow_set", "window_start", "window_end")
_UnitPlace = tuple[str, int]
"""(run id, number of the unit)."""


class Publication(OpenStore):
    """Announce a run, then publish it or record its failure."""

    def announce(self, header: RunHeader) -> None:
        """Record that a run has started; it is running until it is published or fails.

        Other running runs without an unexpired lease become failed. Acquire a lease first.
        """
        columns = schema.runs.c
        with self._writing() as connection:
            unexpired = select(schema.leases.c.holder).where(
                schema.leases.c.expires_at > self._clock()
            )
            is_dead = (columns.state == RunState.RUNNING.value) & columns.id.not_in(unexpired)
            connection.execute(
                update(schema.runs)
                .where(is_dead)
                .values(
                    state=RunState.FAILED.value,
                    verdict_line="the run did not report completion; it stored nothing",
                )
            )
            _replace_run(connection, header_row(header, RunState.RUNNING))

    def fail(self, header: RunHeader, why: str) -> None:
        """Record that a run failed; earlier results of its windows remain."""
        with self._writing() as connection:
            _replace_run(connection, failed_row(header, self._clock(), why))

    def publish(self, run: AuditRun) -> Published:
        """Store a finished run and replace earlier results, in one transaction.

        A judged unit replaces units of the same target topic, flow set and window; a unit without a
        verdict replaces only those without one. Runs without units left are deleted. Publishing is
        idempotent.

        Raises LeaseLostError if another run holds an unexpired lease on a judged topic, ValueError
        if *run* has two units of one key.
        """
        # Built before the transaction starts, which blocks other writers.
        units = _sorted_unit_rows(run)
        with self._writing() as connection:
            return _publish(connection, run, units, self._clock())


def _replace_run(connection: Connection, row: Row) -> None:
    connection.execute(delete(schema.runs).where(schema.runs.c.id == row["id"]))
    connection.execute(insert(schema.runs), row)


def _publish(
    connection: Connection, run: AuditRun, units: Sequence[UnitRows], now: int
) -> Published:
    refuse_if_taken(
        connection,
        [
            (each.unit["target_cluster"], each.unit["target_topic"])
            for each in units
            if each.unit["judged"]
        ],
        holder=run.header.id,
        now=now,
    )
    gone = _superseded(connection, run.header.id, units)
    paths = _paths(connection, gone)
    _delete(connection, gone, run.header.id)
    connection.execute(insert(schema.runs), run_row(run))
    for number, each in enumerate(units):
        _insert(connection, run.header.id, number, each)
    for judged in sorted(run.judged, key=lambda each: each.outcome.scope.window.start):
        _complete(connection, run.header.id, judged, now)
    for unjudged in run.not_audited:
        _skip(connection, run.header.id, unjudged, now)
    return Published(tuple(sorted(paths - _still_referenced(connection, paths))))


def _sorted_unit_rows(run: AuditRun) -> list[UnitRows]:
    """The rows of the units in a canonical order."""
    units = [*map(judged_rows, run.judged), *map(unjudged_rows, run.not_audited)]
    units.sort(key=lambda each: tuple(each.unit[column] for column in _KEY))
    keys = {tuple(each.unit[column] for column in _KEY) for each in units}
    if len(keys) != len(units):
        raise ValueError(f"run {run.header.id} has two units of one target topic and window")
    return units


def _superseded(connection: Connection, run_id: str, units: Iterable[UnitRows]) -> set[_UnitPlace]:
    """The stored units to replace: those of the same key, and all of a run published again."""
    columns = schema.units.c
    place = select(columns.run_id, columns.unit)
    same_run = connection.execute(place.where(columns.run_id == run_id))
    found = {(row.run_id, row.unit) for row in same_run}
    same_key = place.where(*(columns[column] == bindparam(column) for column in _KEY))
    # A unit without a verdict does not replace a judged one.
    unjudged = same_key.where(~columns.judged)
    for each in units:
        key = {column: each.unit[column] for column in _KEY}
        rows = connection.execute(same_key if each.unit["judged"] else unjudged, key)
        found.update((row.run_id, row.unit) for row in rows)
    return found


def _paths(connection: Connection, places: set[_UnitPlace]) -> set[str]:
    table = schema.directories
    of_unit = select(table.c.path).where(
        table.c.run_id == bindparam("of_run"), table.c.unit == bindparam("of_unit")
    )
    return {
        path
        for run_id, unit in places
        for path in connection.execute(of_unit, {"of_run": run_id, "of_unit": unit}).scalars()
    }


def _still_referenced(connection: Connection, paths: set[str]) -> set[str]:
    reference = select(schema.directories.c.path).where(
        schema.directories.c.path == bindparam("is")
    )
    return {path for path in paths if connection.execute(reference, {"is": path}).first()}


def _delete(connection: Connection, places: set[_UnitPlace], run_id: str) -> None:
    if places:
        keys = [{"of_run": run, "of_unit": unit} for run, unit in sorted(places)]
        for table in (*schema.OF_UNIT, schema.units):
            of_unit = table.c.run_id == bindparam("of_run"), table.c.unit == bindparam("of_unit")
            connection.execute(delete(table).where(*of_unit), keys)
        counted = {run: sum(run == each for each, _ in places) for run, _ in places}
        connection.execute(
            update(schema.runs)
            .where(schema.runs.c.id == bindparam("of_run"))
            .values(superseded_units=schema.runs.c.superseded_units + bindparam("more")),
            [{"of_run": run, "more": more} for run, more in sorted(counted.items())],
        )
    has_units = exists().where(schema.units.c.run_id == schema.runs.c.id)
    emptied = (schema.runs.c.superseded_units > 0) & ~has_units
    connection.execute(delete(schema.runs).where(emptied | (schema.runs.c.id == run_id)))


def _insert(connection: Connection, run_id: str, number: int, rows: UnitRows) -> None:
    place = {"run_id": run_id, "unit": number}
    tables: Sequence[tuple[Table, Sequence[Row]]] = (
        (schema.units, [rows.unit]),
        (schema.unit_flows, rows.flows),
        (schema.partitions, rows.partitions),
        (schema.evidence, rows.evidence),
        (schema.replays, rows.replays),
        (schema.directories, rows.directories),
    )
    for table, values in tables:
        if values:
            connection.execute(insert(table), [place | each for each in values])


def _complete(connection: Connection, run_id: str, judged: JudgedUnit, now: int) -> None:
    scope, table = judged.outcome.scope, schema.completions
    for flow in {each.flow for each in scope.flows}:
        same = _is_topic_of(flow, scope.target_topic)
        known = _known_span(connection, same)
        span = extend_completion(
            known,
            scope.window,
            complete_up_to(judged.outcome),
            restarts=judged.restarts_completion,
        )
        values = _completion(span, run_id, now)
        if known is None:
            key = {"flow": flow.label, "target_topic": scope.target_topic}
            connection.execute(insert(table), key | values)
        elif span != known:
            connection.execute(update(table).where(same).values(values))


def _skip(connection: Connection, run_id: str, unjudged: UnjudgedUnit, now: int) -> None:
    """Advance completion over a window that is empty or expired."""
    gone = unjudged.not_audited.reason is NotAuditedReason.EXPIRED
    if not gone and unjudged.not_audited.reason is not NotAuditedReason.EMPTY:
        return
    for flow in unjudged.flows:
        same = _is_topic_of(flow, unjudged.not_audited.target_topic)
        known = _known_span(connection, same)
        if known is None:
            continue
        span = skip_window(known, unjudged.window, gone=gone)
        if span != known:
            values = _completion(span, run_id, now)
            connection.execute(update(schema.completions).where(same).values(values))


def _is_topic_of(flow: Flow, target_topic: str) -> ColumnElement[bool]:
    columns = schema.completions.c
    return (columns.flow == flow.label) & (columns.target_topic == target_topic)


def _known_span(connection: Connection, same: ColumnElement[bool]) -> CompletionSpan | None:
    columns = schema.completions.c
    found = connection.execute(select(columns.start_at, columns.up_to).where(same)).first()
    return None if found is None else CompletionSpan(found.start_at, found.up_to)


def _completion(span: CompletionSpan, run_id: str, now: int) -> dict[str, object]:
    return {"start_at": span.start, "up_to": span.up_to, "run_id": run_id, "updated_at": now}
