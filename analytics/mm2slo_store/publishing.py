"""Writing a run: what it replaces goes, it comes, completion moves; in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Table, bindparam, delete, exists, insert, select, update

from mm2slo_core.audit.conclusion import complete_up_to
from mm2slo_core.audit.scope import NotAuditedReason
from mm2slo_store import schema
from mm2slo_store.completing import Span, advanced, passed
from mm2slo_store.conversion import Row, UnitRows, judged_rows, run_row, unjudged_rows
from mm2slo_store.leases import refuse_if_taken
from mm2slo_store.rows import Published

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection

    from mm2slo_core.topology import Flow
    from mm2slo_store.rows import AuditRun, JudgedUnit, UnjudgedUnit

_KEY = ("target_cluster", "target_topic", "flow_set", "window_begin", "window_end")
_Place = tuple[str, int]
"""(run id, number of the unit)."""


def publish(
    connection: Connection, run: AuditRun, units: Sequence[UnitRows], now: int
) -> Published:
    """Replace what *run* replaces; *units* are its `numbered` rows. See `Store.publish`."""
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
        _pass_over(connection, run.header.id, unjudged, now)
    return Published(tuple(sorted(paths - _referred(connection, paths))))


def numbered(run: AuditRun) -> list[UnitRows]:
    """The rows of the units, in an order that does not depend on who was ready first.

    Asked for before the transaction starts, so that it is short: nobody else can write meanwhile.
    """
    units = [*map(judged_rows, run.judged), *map(unjudged_rows, run.not_audited)]
    units.sort(key=lambda each: tuple(each.unit[column] for column in _KEY))
    keys = {tuple(each.unit[column] for column in _KEY) for each in units}
    if len(keys) != len(units):
        raise ValueError(f"the run {run.header.id} says twice what became of one target topic")
    return units


def _superseded(connection: Connection, run_id: str, units: Iterable[UnitRows]) -> set[_Place]:
    """The stored units that give way: those of the same key, and all of a run published again."""
    columns = schema.units.c
    place = select(columns.run_id, columns.unit)
    same_run = connection.execute(place.where(columns.run_id == run_id))
    found = {(row.run_id, row.unit) for row in same_run}
    same_key = place.where(*(columns[column] == bindparam(column) for column in _KEY))
    # A verdict is not thrown away because a later run had none.
    unjudged = same_key.where(~columns.judged)
    for each in units:
        key = {column: each.unit[column] for column in _KEY}
        rows = connection.execute(same_key if each.unit["judged"] else unjudged, key)
        found.update((row.run_id, row.unit) for row in rows)
    return found


def _paths(connection: Connection, places: set[_Place]) -> set[str]:
    table = schema.directories
    of_unit = select(table.c.path).where(
        table.c.run_id == bindparam("of_run"), table.c.unit == bindparam("of_unit")
    )
    return {
        path
        for run_id, unit in places
        for path in connection.execute(of_unit, {"of_run": run_id, "of_unit": unit}).scalars()
    }


def _referred(connection: Connection, paths: set[str]) -> set[str]:
    refers = select(schema.directories.c.path).where(schema.directories.c.path == bindparam("is"))
    return {path for path in paths if connection.execute(refers, {"is": path}).first()}


def _delete(connection: Connection, places: set[_Place], run_id: str) -> None:
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
        same = _is_of(flow, scope.target_topic)
        known = _known(connection, same)
        span = advanced(
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


def _pass_over(connection: Connection, run_id: str, unjudged: UnjudgedUnit, now: int) -> None:
    """A topic without records of the window, or that has them no more, holds no later run back."""
    gone = unjudged.not_audited.reason is NotAuditedReason.EXPIRED
    if not gone and unjudged.not_audited.reason is not NotAuditedReason.EMPTY:
        return
    for flow in unjudged.flows:
        same = _is_of(flow, unjudged.not_audited.target_topic)
        known = _known(connection, same)
        if known is None:
            continue
        span = passed(known, unjudged.window, gone=gone)
        if span != known:
            values = _completion(span, run_id, now)
            connection.execute(update(schema.completions).where(same).values(values))


def _is_of(flow: Flow, target_topic: str) -> ColumnElement[bool]:
    columns = schema.completions.c
    return (columns.flow == flow.label) & (columns.target_topic == target_topic)


def _known(connection: Connection, same: ColumnElement[bool]) -> Span | None:
    columns = schema.completions.c
    found = connection.execute(select(columns.begin_at, columns.up_to).where(same)).first()
    return None if found is None else Span(found.begin_at, found.up_to)


def _completion(span: Span, run_id: str, now: int) -> dict[str, object]:
    return {"begin_at": span.start, "up_to": span.up_to, "run_id": run_id, "updated_at": now}
