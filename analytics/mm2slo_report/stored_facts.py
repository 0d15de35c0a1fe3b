"""Planned maintenance and audit results from the results store, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.audit_confirmation import AuditedUnit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_store import Store
    from mm2slo_store.audit_rows import Run, StoredUnit

_LOSS: Final = "loss"


class FactSource(Protocol):
    """Planned maintenance and audit results for the reporter."""

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Planned maintenance that overlaps *span*."""

    def audit_facts(self, spans: Mapping[Flow, Span]) -> Mapping[Flow, Sequence[AuditedUnit]]:
        """For each flow, its judged units whose window overlaps the flow's span."""


class StoreFacts:
    """A `FactSource` from the results store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Includes removed ones, which may still exclude a part."""
        return self._store.exclusions(overlapping=span)

    def audit_facts(self, spans: Mapping[Flow, Span]) -> Mapping[Flow, Sequence[AuditedUnit]]:
        """One fact per judged unit; two store queries for any number of flows."""
        found: dict[Flow, list[AuditedUnit]] = {flow: [] for flow in spans}
        if not spans:
            return found
        whole = Window(
            min(each.start for each in spans.values()), max(each.end for each in spans.values())
        )
        units = self._store.units(overlapping=whole, judged=True)
        wanted = {unit.run_id for unit in units}
        runs = {run.header.id: run for run in self._store.runs_by_id(wanted)}
        for unit in units:
            run = runs.get(unit.run_id)
            if run is None:
                # Superseded between the two queries; the superseding run has its own units.
                continue
            fact = _fact(unit, run)
            for each in unit.flows:
                span = spans.get(each.flow)
                if span is not None and span.overlaps(Span(unit.window.start, unit.window.end)):
                    found[each.flow].append(fact)
        return found


def _fact(unit: StoredUnit, run: Run) -> AuditedUnit:
    bound = next((each.upper for each in unit.bounds if each.name == _LOSS), None)
    opened = unit.oldest_open
    complete = unit.window.end if opened is None else min(unit.window.end, opened)
    has_overdue = unit.counts.get(Verdict.OVERDUE, 0) > 0
    return AuditedUnit(
        run_id=unit.run_id,
        complete_up_to=None if run.complete_up_to is None else complete,
        counts=unit.counts,
        loss_below=None if run.header.sample_rate >= 1 else bound or None,
        topic=unit.key.target_topic,
        started_at=run.header.started_at,
        window=unit.window,
        sample=Sample(run.header.sample_rate, run.header.salt),
        oldest_open=opened,
        overdue_since=opened + unit.max_pending if opened is not None and has_overdue else None,
    )
