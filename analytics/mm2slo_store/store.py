"""The results store: opens it, and announces, publishes and queries audits.

`Store` has a part for each kind of record. An audit run is announced, then published in one
transaction, which replaces earlier runs of the same units.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
    tuple_,
    update,
)

from mm2slo_core.audit.audit_conclusion import complete_up_to
from mm2slo_core.audit.audit_scope import NotAuditedReason, UnitScope, Window
from mm2slo_core.audit.unit_outcome import Evidence, Verdict
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store import store_schema
from mm2slo_store.audit_rows import (
    AuditRun,
    Completion,
    CompletionSpan,
    EvidencePlace,
    JudgedUnit,
    Published,
    Run,
    RunHeader,
    RunPlace,
    RunState,
    StoredEvidence,
    StoredUnit,
    UnitKey,
    UnjudgedUnit,
    extend_completion,
    skip_window,
)
from mm2slo_store.open_store import (
    OpenStore,
    engine_for,
    parse_address,
    prepare_sqlite_file,
    raise_user_errors,
    upgrade_if_older,
)
from mm2slo_store.row_conversion import (
    Row,
    UnitRows,
    decode_scope,
    dumps,
    from_row,
    key_row,
    run_row,
    unit_from_rows,
    unit_rows,
)
from mm2slo_store.sli_history import Exclusions, SliHistory
from mm2slo_store.store_leases import DigestClaims, Leases, refuse_if_taken


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class AuditQueries(OpenStore):
    """Runs, units and anomalies as they were published."""

    def runs(
        self,
        *,
        flow: Flow | None = None,
        state: RunState | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """Runs, newest first, that follow the place *after*."""
        columns = store_schema.runs.c
        query = _newest_first(select(store_schema.runs)).where(*_of_flow(flow)).limit(limit)
        if state is not None:
            query = query.where(columns.state == state.value)
        if after is not None:
            query = query.where(tuple_(columns.started_at, columns.id) < tuple_(*after))
        with self._reading() as connection:
            return tuple(from_row(Run, row) for row in connection.execute(query).mappings())

    def runs_by_id(self, run_ids: Collection[str]) -> tuple[Run, ...]:
        """The stored runs of *run_ids*, newest first."""
        with self._reading() as connection:
            return _runs_by_id(connection, run_ids)

    def run(self, run_id: str) -> Run:
        """One run. Raises UserError for an unknown id."""
        found = self.runs_by_id((run_id,))
        if not found:
            raise UserError(
                f"the store {self.redacted} has no run {run_id}; it may have been replaced"
            )
        return found[0]

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        """The number of runs by state."""
        state = store_schema.runs.c.state
        query = select(state, func.count().label("number")).where(*_of_flow(flow)).group_by(state)
        with self._reading() as connection:
            found = {row.state: row.number for row in connection.execute(query)}
        return {each: found.get(each.value, 0) for each in RunState}

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        """The newest finished run of each of *flows* that has one, in their order."""
        columns, missing = store_schema.runs.c, {flow.label: flow for flow in flows}
        query = _newest_first(select(columns.id, columns.flows))
        finished = query.where(columns.state == RunState.FINISHED.value)
        newest: dict[Flow, str] = {}
        with self._reading() as connection:
            for run_id, labels in connection.execute(finished):
                for label in missing.keys() & set(labels):
                    newest[missing.pop(label)] = run_id
                if not missing:
                    break
            known = {run.header.id: run for run in _runs_by_id(connection, {*newest.values()})}
        return {flow: known[newest[flow]] for flow in flows if flow in newest}

    def units(
        self,
        *,
        run_id: str | None = None,
        overlapping: Window | None = None,
        judged: bool | None = None,
    ) -> tuple[StoredUnit, ...]:
        """Summaries of units, in order of window, topic and run."""
        columns = store_schema.units.c
        # The scope can be large.
        selected = [column for column in columns if column is not columns.scope]
        max_pending = columns.scope["max_pending"].as_integer()
        query = (
            select(
                *selected,
                func.coalesce(max_pending, 0).label("max_pending"),
                store_schema.unit_flows.c.label,
                store_schema.unit_flows.c.source_topic,
            )
            .join(store_schema.unit_flows, _same_unit(store_schema.unit_flows))
            .order_by(
                columns.window_start,
                columns.window_end,
                columns.target_topic,
                columns.run_id,
                columns.unit,
                store_schema.unit_flows.c.flow,
            )
        )
        if run_id is not None:
            query = query.where(columns.run_id == run_id)
        if overlapping is not None:
            query = query.where(*_overlaps(overlapping))
        if judged is not None:
            query = query.where(columns.judged == judged)
        with self._reading() as connection:
            found = connection.execute(query).mappings()
            grouped = groupby(found, key=lambda row: (row["run_id"], row["unit"]))
            return tuple(unit_from_rows(list(rows)) for _, rows in grouped)

    def evidence(
        self,
        *,
        run_id: str | None = None,
        verdicts: Collection[Verdict] = (),
        after: EvidencePlace | None = None,
        limit: int | None = None,
    ) -> tuple[StoredEvidence, ...]:
        """Anomalies in order of their place that follow the place *after*.

        *verdicts* empty: all.
        """
        table, columns, flows = store_schema.evidence, store_schema.units.c, store_schema.unit_flows
        place = columns.window_start, table.c.run_id, table.c.unit, table.c.number
        query = (
            select(table, columns.window_start, columns.target_topic, flows.c.label)
            .join(store_schema.units, _same_unit(table))
            .join(
                flows,
                and_(
                    flows.c.run_id == table.c.run_id,
                    flows.c.unit == table.c.unit,
                    flows.c.flow == table.c.flow,
                ),
            )
            .order_by(*place)
            .limit(limit)
        )
        if after is not None:
            query = query.where(tuple_(*place) > tuple_(*after))
        if run_id is not None:
            query = query.where(table.c.run_id == run_id)
        if verdicts:
            query = query.where(table.c.verdict.in_([each.value for each in verdicts]))
        with self._reading() as connection:
            return tuple(
                StoredEvidence(
                    place=EvidencePlace(*(row[column.name] for column in place)),
                    target_topic=row["target_topic"],
                    flow=Flow.parse(row["label"]),
                    evidence=from_row(Evidence, row),
                )
                for row in connection.execute(query).mappings()
            )

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        """The number of anomalies in evidence by unit and verdict."""
        columns = store_schema.evidence.c
        query = (
            select(columns.unit, columns.verdict, func.count())
            .where(columns.run_id == run_id)
            .group_by(columns.unit, columns.verdict)
        )
        found: dict[int, dict[Verdict, int]] = {}
        with self._reading() as connection:
            for unit, verdict, number in connection.execute(query):
                found.setdefault(unit, {})[Verdict(verdict)] = number
        return found

    def completion(self, flow: Flow, target_topic: str) -> Completion | None:
        """How far a topic is complete; None: never judged. See `extend_completion`."""
        columns = store_schema.completions.c
        query = select(store_schema.completions).where(
            columns.flow == flow.label, columns.target_topic == target_topic
        )
        with self._reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else from_row(Completion, row)

    def open_scopes(self, key: UnitKey, window: Window) -> tuple[UnitScope, ...]:
        """Scopes of stored units of *window* with lost, overdue or late records.

        Records of these that match now are late.
        """
        columns, flows = store_schema.units.c, store_schema.unit_flows
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
        with self._reading() as connection:
            return tuple(
                decode_scope(scope)
                for scope, counts in connection.execute(query)
                if any(counts.get(each.value) for each in OPEN_VERDICTS)
            )


class Publication(OpenStore):
    """Announce a run, then publish it or record its failure."""

    def announce(self, header: RunHeader) -> None:
        """Record that a run has started; it is running until it is published or fails.

        Other running runs without an unexpired lease become failed. Acquire a lease first.
        """
        columns = store_schema.runs.c
        with self._writing() as connection:
            unexpired = select(store_schema.leases.c.holder).where(
                store_schema.leases.c.expires_at > self._clock()
            )
            is_dead = (columns.state == RunState.RUNNING.value) & columns.id.not_in(unexpired)
            connection.execute(
                update(store_schema.runs)
                .where(is_dead)
                .values(
                    state=RunState.FAILED.value,
                    verdict_line="the run did not report completion; it stored nothing",
                )
            )
            _replace_run(connection, Run(header, RunState.RUNNING))

    def fail(self, header: RunHeader, why: str) -> None:
        """Record that a run failed; earlier results of its windows remain."""
        with self._writing() as connection:
            failed = Run(header, RunState.FAILED, finished_at=self._clock(), verdict_line=why)
            _replace_run(connection, failed)

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


class Store(AuditQueries, Publication, Leases, Exclusions, SliHistory, DigestClaims):
    """An open store, from `Store.open`. Thread-safe; processes can share a database.

    Every method raises UserError if the database fails, and rolls back.
    """

    @classmethod
    @contextmanager
    def open(
        cls, url_or_path: str | Path, *, clock: Callable[[], int] = _now_ms
    ) -> Iterator[Store]:
        """Open a store; create it or upgrade its schema if needed.

        *url_or_path* is a path, `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE` (extra
        `postgres`); *clock* returns epoch ms. Raises UserError, and changes nothing, if the address
        is invalid, or the store is unreachable, read-only, corrupt, of another program or of a
        newer version.
        """
        address = parse_address(url_or_path)
        engine = engine_for(address)
        try:
            with raise_user_errors(address):
                if address.file is not None:
                    prepare_sqlite_file(address.file)
                upgrade_if_older(engine, address)
            yield cls(engine, address, clock)
        finally:
            engine.dispose()


OPEN_VERDICTS: Final = (Verdict.LOST, Verdict.OVERDUE, Verdict.LATE)
"""Verdicts of records that are or were unmatched. Late is one: a third run reports late again."""

_MAX_PARAMETERS: Final = 500
"""Parameters of one statement; SQLite allows 32,766, older versions 999."""


def _runs_by_id(connection: Connection, run_ids: Collection[str]) -> tuple[Run, ...]:
    # In batches; at most as many runs as units in a report's window.
    ordered = sorted(run_ids)
    found: list[Run] = []
    for start in range(0, len(ordered), _MAX_PARAMETERS):
        part = store_schema.runs.c.id.in_(ordered[start : start + _MAX_PARAMETERS])
        rows = connection.execute(select(store_schema.runs).where(part)).mappings()
        found += [from_row(Run, row) for row in rows]
    return tuple(
        sorted(found, key=lambda run: (run.header.started_at, run.header.id), reverse=True)
    )


def _of_flow(flow: Flow | None) -> list[ColumnElement[bool]]:
    """The condition on `schema.runs` that a run audits *flow*."""
    if flow is None:
        return []
    # Matches the JSON text: dialects differ in JSON lists, and SQLite's LIKE ignores case.
    text = cast(store_schema.runs.c.flows, Text)
    return [func.replace(text, dumps(flow.label), "") != text]


def _same_unit(table: FromClause) -> ColumnElement[bool]:
    return and_(
        table.c.run_id == store_schema.units.c.run_id, table.c.unit == store_schema.units.c.unit
    )


def _overlaps(window: Window) -> list[ColumnElement[bool]]:
    columns = store_schema.units.c
    return [columns.window_start < window.end, columns.window_end > window.start]


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(store_schema.runs.c.started_at.desc(), store_schema.runs.c.id.desc())


_KEY = ("target_cluster", "target_topic", "flow_set", "window_start", "window_end")

_UnitPlace = tuple[str, int]
"""(run id, number of the unit)."""


def _replace_run(connection: Connection, run: Run) -> None:
    connection.execute(delete(store_schema.runs).where(store_schema.runs.c.id == run.header.id))
    connection.execute(insert(store_schema.runs), run_row(run))


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
    finished = Run(
        run.header,
        RunState.FINISHED,
        finished_at=run.finished_at,
        exit_code=run.exit_code,
        verdict_line=run.verdict_line,
        complete_up_to=run.complete_up_to,
        bytes_read=run.bytes_read,
    )
    connection.execute(insert(store_schema.runs), run_row(finished))
    for number, each in enumerate(units):
        _insert(connection, run.header.id, number, each)
    for judged in sorted(run.judged, key=lambda each: each.outcome.scope.window.start):
        _complete(connection, run.header.id, judged, now)
    for unjudged in run.not_audited:
        _skip(connection, run.header.id, unjudged, now)
    return Published(tuple(sorted(paths - _still_referenced(connection, paths))))


def _sorted_unit_rows(run: AuditRun) -> list[UnitRows]:
    """The rows of the units in a canonical order."""
    published: list[JudgedUnit | UnjudgedUnit] = [*run.judged, *run.not_audited]
    units = [(tuple(key_row(each.key, each.window).values()), each) for each in published]
    units.sort(key=itemgetter(0))
    if len({key for key, _ in units}) != len(units):
        raise ValueError(f"run {run.header.id} has two units of one target topic and window")
    return [unit_rows(each, run.header.id, number) for number, (_, each) in enumerate(units)]


def _superseded(connection: Connection, run_id: str, units: Iterable[UnitRows]) -> set[_UnitPlace]:
    """The stored units to replace: those of the same key, and all of a run published again."""
    columns = store_schema.units.c
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
    table = store_schema.directories
    of_unit = select(table.c.path).where(
        table.c.run_id == bindparam("of_run"), table.c.unit == bindparam("of_unit")
    )
    return {
        path
        for run_id, unit in places
        for path in connection.execute(of_unit, {"of_run": run_id, "of_unit": unit}).scalars()
    }


def _still_referenced(connection: Connection, paths: set[str]) -> set[str]:
    reference = select(store_schema.directories.c.path).where(
        store_schema.directories.c.path == bindparam("is")
    )
    return {path for path in paths if connection.execute(reference, {"is": path}).first()}


def _delete(connection: Connection, places: set[_UnitPlace], run_id: str) -> None:
    if places:
        keys = [{"of_run": run, "of_unit": unit} for run, unit in sorted(places)]
        # Parts before their unit: foreign keys are checked by each statement.
        for table in (*store_schema.OF_UNIT, store_schema.units):
            of_unit = table.c.run_id == bindparam("of_run"), table.c.unit == bindparam("of_unit")
            connection.execute(delete(table).where(*of_unit), keys)
        counted = {run: sum(run == each for each, _ in places) for run, _ in places}
        connection.execute(
            update(store_schema.runs)
            .where(store_schema.runs.c.id == bindparam("of_run"))
            .values(superseded_units=store_schema.runs.c.superseded_units + bindparam("more")),
            [{"of_run": run, "more": more} for run, more in sorted(counted.items())],
        )
    has_units = exists().where(store_schema.units.c.run_id == store_schema.runs.c.id)
    emptied = (store_schema.runs.c.superseded_units > 0) & ~has_units
    connection.execute(
        delete(store_schema.runs).where(emptied | (store_schema.runs.c.id == run_id))
    )


def _insert(connection: Connection, run_id: str, number: int, rows: UnitRows) -> None:
    place = {"run_id": run_id, "unit": number}
    tables: Sequence[tuple[Table, Sequence[Row]]] = (
        (store_schema.units, [rows.unit]),
        (store_schema.unit_flows, rows.flows),
        (store_schema.partitions, rows.partitions),
        (store_schema.evidence, rows.evidence),
        (store_schema.replays, rows.replays),
        (store_schema.directories, rows.directories),
    )
    for table, values in tables:
        if values:
            connection.execute(insert(table), [place | each for each in values])


def _complete(connection: Connection, run_id: str, judged: JudgedUnit, now: int) -> None:
    scope, table = judged.outcome.scope, store_schema.completions
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
            connection.execute(update(store_schema.completions).where(same).values(values))


def _is_topic_of(flow: Flow, target_topic: str) -> ColumnElement[bool]:
    columns = store_schema.completions.c
    return (columns.flow == flow.label) & (columns.target_topic == target_topic)


def _known_span(connection: Connection, same: ColumnElement[bool]) -> CompletionSpan | None:
    columns = store_schema.completions.c
    found = connection.execute(select(columns.start_at, columns.up_to).where(same)).first()
    return None if found is None else CompletionSpan(found.start_at, found.up_to)


def _completion(span: CompletionSpan, run_id: str, now: int) -> dict[str, object]:
    return {"start_at": span.start, "up_to": span.up_to, "run_id": run_id, "updated_at": now}
