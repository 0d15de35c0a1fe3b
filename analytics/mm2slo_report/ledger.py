"""What the results store adds to counted events: planned maintenance and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.audit.scope import Window
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.confirmation import AuditFact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_store import Store
    from mm2slo_store.rows import Run, StoredUnit

_LOSS: Final = "loss"


class Ledger(Protocol):
    """Where the reporter looks up what is known beside the counters."""

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Planned maintenance with a part in *span*."""

    def audit_facts(self, spans: Mapping[Flow, Span]) -> Mapping[Flow, Sequence[AuditFact]]:
        """Of each flow, the judged units whose window lies in its span in part."""


class StoreLedger:
    """The results store as a ledger."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Removed ones too: they say themselves what they still exclude."""
        return self._store.exclusions(overlapping=span)

    def audit_facts(self, spans: Mapping[Flow, Span]) -> Mapping[Flow, Sequence[AuditFact]]:
        """One fact per judged unit; two questions to the store, whatever the number of flows."""
        found: dict[Flow, list[AuditFact]] = {flow: [] for flow in spans}
        if not spans:
            return found
        whole = Window(
            min(each.start for each in spans.values()), max(each.end for each in spans.values())
        )
        units = self._store.units(overlapping=whole, judged=True)
        wanted = {unit.run_id for unit in units}
        runs = {run.header.id: run for run in self._store.runs_of(wanted)}
        for unit in units:
            run = runs.get(unit.run_id)
            if run is None:
                # Replaced in between: it is read with the run that replaced it.
                continue
            fact = _fact(unit, run)
            for each in unit.flows:
                span = spans.get(each.flow)
                if span is not None and span.overlaps(Span(unit.window.start, unit.window.end)):
                    found[each.flow].append(fact)
        return found


def _fact(unit: StoredUnit, run: Run) -> AuditFact:
    bound = next((each.upper for each in unit.bounds if each.name == _LOSS), None)
    return AuditFact(
        run_id=unit.run_id,
        complete_up_to=run.complete_up_to,
        counts=unit.counts,
        loss_below=None if run.header.sample_rate >= 1 else bound,
    )
