"""What the results store adds to counted events: planned maintenance and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.audit.scope import Window
from mm2slo_core.reporting.confirmation import AuditFact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives.exclusion import Exclusion, Span
    from mm2slo_core.topology import Flow
    from mm2slo_store import Store
    from mm2slo_store.rows import Run, StoredUnit

_LOSS: Final = "loss"


class Ledger(Protocol):
    """Where the reporter looks up what is known beside the counters."""

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Planned maintenance with a part in *span*."""

    def audit_facts(self, flow: Flow, span: Span) -> Sequence[AuditFact]:
        """Judged units of *flow* whose window lies in *span* in part."""


class StoreLedger:
    """The results store as a ledger."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Removed ones too: they say themselves what they still exclude."""
        return self._store.exclusions(overlapping=span)

    def audit_facts(self, flow: Flow, span: Span) -> Sequence[AuditFact]:
        """One fact per judged unit."""
        window = Window(span.begin, span.end)
        units = self._store.units(flow=flow, overlapping=window, judged=True)
        runs = {run.header.id: run for run in self._store.runs(flow=flow)}
        # A unit whose run was replaced in between is read with the run that replaced it.
        return [_fact(unit, runs[unit.run_id]) for unit in units if unit.run_id in runs]


def _fact(unit: StoredUnit, run: Run) -> AuditFact:
    bound = next((each.upper for each in unit.bounds if each.name == _LOSS), None)
    return AuditFact(
        run_id=unit.run_id,
        complete_up_to=run.complete_up_to,
        counts=unit.counts,
        loss_below=None if run.header.sample_rate >= 1 else bound,
    )
