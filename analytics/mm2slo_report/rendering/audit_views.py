"""Converts rows of the results store to views of the page."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import TYPE_CHECKING

from mm2slo_core.audit.latency_histogram import observed
from mm2slo_core.audit.record_verdict import FAULTS
from mm2slo_core.catalogue.audit_result_metrics import LatencyMeasure
from mm2slo_report.audit_figures import flow_latency, percentiles
from mm2slo_report.rendering.page_views import AuditView, LatencyView, PercentileView
from mm2slo_report.rendering.value_format import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.audit.record_verdict import Verdict
    from mm2slo_core.topology import Flow
    from mm2slo_store.audit_rows import Run, StoredEvidence, StoredUnit


def audit_view(
    run: Run, units: Iterable[StoredUnit], evidence: Iterable[StoredEvidence] = ()
) -> AuditView:
    """The view of a run with its *units* and the *evidence* to show."""
    counts: Counter[Verdict] = Counter()
    problems = []
    for unit in units:
        counts.update(unit.counts)
        if unit.not_audited is not None:
            reason = f"{unit.not_audited.reason.value}: {unit.not_audited.detail}"
            problems.append(f"{unit.key.target_topic} ({reason.removesuffix(': ')})")
    return AuditView(
        id=run.header.id,
        flows=run.header.flows,
        start=run.header.window.start,
        end=run.header.window.end,
        state=run.state.value,
        verdict=run.verdict_line or "",
        complete_up_to=run.complete_up_to,
        sample_rate=run.header.sample_rate,
        counts={verdict.value: number for verdict, number in counts.items() if number},
        faults=sum(counts[each] for each in FAULTS),
        problems=tuple(problems),
        evidence=tuple(evidence),
    )


def latency_view(run: Run, flow: Flow, units: Sequence[StoredUnit]) -> LatencyView | None:
    """End-to-end latency of *flow* from the units of *run* that only it feeds; None without any.

    A topic fed by several flows has one histogram for all of them.
    """
    cells = flow_latency(flow, units, LatencyMeasure.END_TO_END)
    found = [
        PercentileView(q=q, lower=lower, upper=upper)
        for q, (lower, upper) in percentiles(cells, run).items()
    ]
    if not found:
        return None
    start, end = (moment(at, UTC) for at in (run.header.window.start, run.header.window.end))
    return LatencyView(
        flow=flow,
        origin=f"audit of {start} to {end}",
        records=observed(cells),
        percentiles=tuple(found),
    )
