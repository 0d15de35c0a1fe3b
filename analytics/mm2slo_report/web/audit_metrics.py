"""What audits found, as metrics: of each flow's newest finished one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_core.audit.verdict import FAULTS
from mm2slo_core.catalogue import audited
from mm2slo_core.catalogue.audited import Bound
from mm2slo_report.web.exposition import Family
from mm2slo_store.rows import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mm2slo_core.audit.verdict import Verdict
    from mm2slo_core.catalogue import Metric
    from mm2slo_core.topology import Flow
    from mm2slo_report.audit_figures import AuditFigures, Known

    Figures = Mapping[Flow, AuditFigures]
    Labelled = Iterable[tuple[tuple[str, ...], float | None]]
    """Labels beside those of the flow, and the figure; None: not known."""


def audit_families(runs: Mapping[RunState, int], newest: Figures) -> Iterator[Family]:
    """Runs by state, and the *newest* finished audit of each flow that has one."""
    yield Family(audited.AUDIT_RUNS, [((state.value,), runs[state]) for state in RunState])
    for metric, figures in _FIGURES:
        yield Family(
            metric,
            [
                ((flow.label, flow.source, flow.target, *labels), value)
                for flow, found in newest.items()
                for labels, value in figures(found)
                if value is not None
            ],
        )


def _one(value: float | None) -> Labelled:
    return [((), value)]


def _seconds(epoch_ms: int | None) -> Labelled:
    return _one(None if epoch_ms is None else epoch_ms / 1000)


def _by_verdict(counts: Mapping[Verdict, int]) -> Labelled:
    return [((verdict.value,), count) for verdict, count in counts.items()]


def _bounded(known: Mapping[Verdict, Known] | Mapping[audited.Broken, Known]) -> Labelled:
    for of, (estimate, interval) in known.items():
        yield (of.value, Bound.ESTIMATE), estimate
        if interval is not None:
            yield (of.value, Bound.LOWER), interval.lower
            yield (of.value, Bound.UPPER), interval.upper


def _latency(figures: AuditFigures) -> Labelled:
    for stretch, percentiles in figures.latency.items():
        for q, (lower, upper) in percentiles.items():
            yield (stretch.value, percentile_name(q), Bound.LOWER), lower
            yield (stretch.value, percentile_name(q), Bound.UPPER), upper


_FIGURES: Final[tuple[tuple[Metric, Callable[[AuditFigures], Labelled]], ...]] = (
    (audited.AUDIT_LAST_RUN_TIMESTAMP_SECONDS, lambda each: _seconds(each.run.finished_at)),
    (
        audited.AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.header.window.end),
    ),
    (
        audited.AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.complete_up_to),
    ),
    (audited.AUDIT_RECORDS, lambda each: _by_verdict(each.counts)),
    (audited.AUDIT_FAULTS_RECORDS, lambda each: _one(sum(each.counts[of] for of in FAULTS))),
    (audited.AUDIT_UNAUDITED_TOPICS, lambda each: _one(each.unaudited)),
    (audited.AUDIT_SAMPLED_RATIO, lambda each: _one(each.run.header.sample_rate)),
    (audited.AUDIT_RECORDS_RATIO, lambda each: _bounded(each.records)),
    (audited.AUDIT_KEYS_RATIO, lambda each: _bounded(each.keys)),
    (audited.AUDIT_LATENCY_SECONDS, _latency),
    (audited.AUDIT_EVIDENCE_RECORDS, lambda each: _by_verdict(each.evidence)),
    (audited.AUDIT_UNEVIDENCED_RECORDS, lambda each: _by_verdict(each.unevidenced)),
)
"""Each metric of a flow with its figures, in the order of the catalogue."""
