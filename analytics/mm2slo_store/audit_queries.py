"""Audits in an open store: queries."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Text, and_, cast, exists, func, select, tuple_

from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import Evidence
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store import schema
from mm2slo_store.audit_rows import (
    Completion,
    RunState,
    StoredEvidence,
)
from mm2slo_store.json_encoding import decode_scope, dumps
from mm2slo_store.open_store import OpenStore
from mm2slo_store.row_conversion import (
    from_row,
    run_from_row,
    stored_unit,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import ColumnElement, Connection, FromClause, Select

    from mm2slo_core.audit.audit_scope import UnitScope, Window
    from mm2slo_store.audit_rows import Run, RunPlace, StoredUnit, UnitKey

OPEN_VERDICTS: Final = (Verdict.LOST, Verdict.OVERDUE, Verdict.LATE)
"""Verdicts of records that are or were unmatched. Late is one: a third run reports late again."""
_MAX_PARAMETERS: Final = 500
"""Parameters of one statement; SQLite allows 32,766, older versions 999."""


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
        columns = schema.runs.c
        query = _newest_first(select(schema.runs)).where(*_of_flow(flow)).limit(limit)
        if state is not None:
            query = query.where(columns.state == state.value)
        if after is not None:
            query = query.where(tuple_(columns.started_at, columns.id) < tuple_(*after))
        with self._reading() as connection:
            return tuple(map(run_from_row, connection.execute(query).mappings()))

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
        state = schema.runs.c.state
        query = select(state, func.count().label("number")).where(*_of_flow(flow)).group_by(state)
        with self._reading() as connection:
            found = {row.state: row.number for row in connection.execute(query)}
        return {each: found.get(each.value, 0) for each in RunState}

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        """The newest finished run of each of *flows* that has one, in their order."""
        columns, missing = schema.runs.c, {flow.label: flow for flow in flows}
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
        columns = schema.units.c
        # The scope can be large.
        selected = [column for column in columns if column is not columns.scope]
        max_pending = columns.scope["max_pending"].as_integer()
        query = (
            select(
                *selected,
                func.coalesce(max_pending, 0).label("max_pending"),
                schema.unit_flows.c.label,
                schema.unit_flows.c.source_topic,
            )
            .join(schema.unit_flows, _same_unit(schema.unit_flows))
            .order_by(
                columns.window_start,
                columns.window_end,
                columns.target_topic,
                columns.run_id,
                columns.unit,
                schema.unit_flows.c.flow,
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
            return tuple(stored_unit(list(rows)) for _, rows in grouped)

    def evidence(
        self,
        *,
        run_id: str | None = None,
        verdicts: Collection[Verdict] = (),
        limit: int | None = None,
        start: int = 0,
    ) -> tuple[StoredEvidence, ...]:
        """Anomalies in order of window, unit and number, without the first *start*.

        *verdicts* empty: all.
        """
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
            .order_by(columns.window_start, table.c.run_id, table.c.unit, table.c.number)
            .limit(limit)
            .offset(start or None)
        )
        if run_id is not None:
            query = query.where(table.c.run_id == run_id)
        if verdicts:
            query = query.where(table.c.verdict.in_([each.value for each in verdicts]))
        with self._reading() as connection:
            return tuple(
                StoredEvidence(
                    run_id=row["run_id"],
                    unit=row["unit"],
                    target_topic=row["target_topic"],
                    flow=Flow.parse(row["label"]),
                    evidence=from_row(Evidence, row),
                )
                for row in connection.execute(query).mappings()
            )

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        """The number of anomalies in evidence by unit and verdict."""
        columns = schema.evidence.c
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
        columns = schema.completions.c
        query = select(columns.start_at, columns.up_to, columns.run_id, columns.updated_at).where(
            columns.flow == flow.label, columns.target_topic == target_topic
        )
        with self._reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else Completion(flow, target_topic, *row)

    def open_scopes(self, key: UnitKey, window: Window) -> tuple[UnitScope, ...]:
        """Scopes of stored units of *window* with lost, overdue or late records.

        Records of these that match now are late.
        """
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
        with self._reading() as connection:
            return tuple(
                decode_scope(scope)
                for scope, counts in connection.execute(query)
                if any(counts.get(each.value) for each in OPEN_VERDICTS)
            )


def _runs_by_id(connection: Connection, run_ids: Collection[str]) -> tuple[Run, ...]:
    # In batches; at most as many runs as units in a report's window.
    ordered = sorted(run_ids)
    found: list[Run] = []
    for start in range(0, len(ordered), _MAX_PARAMETERS):
        part = schema.runs.c.id.in_(ordered[start : start + _MAX_PARAMETERS])
        rows = connection.execute(select(schema.runs).where(part)).mappings()
        found += map(run_from_row, rows)
    return tuple(
        sorted(found, key=lambda run: (run.header.started_at, run.header.id), reverse=True)
    )


def _of_flow(flow: Flow | None) -> list[ColumnElement[bool]]:
    """The condition on `schema.runs` that a run audits *flow*."""
    if flow is None:
        return []
    # Matches the JSON text: dialects differ in JSON lists, and SQLite's LIKE ignores case.
    text = cast(schema.runs.c.flows, Text)
    return [func.replace(text, dumps(flow.label), "") != text]


def _same_unit(table: FromClause) -> ColumnElement[bool]:
    return and_(table.c.run_id == schema.units.c.run_id, table.c.unit == schema.units.c.unit)


def _overlaps(window: Window) -> list[ColumnElement[bool]]:
    columns = schema.units.c
    return [columns.window_start < window.end, columns.window_end > window.start]


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(schema.runs.c.started_at.desc(), schema.runs.c.id.desc())
