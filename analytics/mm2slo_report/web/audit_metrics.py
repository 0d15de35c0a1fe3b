"""Metrics of each flow's newest finished audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_core.audit.record_verdict import FAULTS
from mm2slo_core.catalogue import audit_result_metrics
from mm2slo_core.catalogue.audit_result_metrics import Bound
from mm2slo_report.web.metric_family import metric_family
from mm2slo_store.audit_rows import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import prometheus_client

    from mm2slo_core.audit.record_verdict import Verdict
    from mm2slo_core.catalogue import Metric
    from mm2slo_core.topology import Flow
    from mm2slo_report.audit_figures import AuditFigures, RateEstimate

    Figures = Mapping[Flow, AuditFigures]
    Labelled = Iterable[tuple[tuple[str, ...], float | None]]
    """Labels in addition to those of the flow, and the value; None if unknown."""


def audit_families(
    runs: Mapping[RunState, int], newest: Figures
) -> Iterator[prometheus_client.Metric]:
    """Runs by state, and each flow's *newest* finished audit."""
    yield metric_family(
        audit_result_metrics.AUDIT_RUNS, [((state.value,), runs[state]) for state in RunState]
    )
    for metric, figures in _FIGURES:
        series = [
            ((flow.label, flow.source, flow.target, *labels), value)
            for flow, found in newest.items()
            for labels, value in figures(found)
            if value is not None
        ]
        if series:
            yield metric_family(metric, series)


def _single(value: float | None) -> Labelled:
    return [((), value)]


def _seconds(epoch_ms: int | None) -> Labelled:
    return _single(None if epoch_ms is None else epoch_ms / 1000)


def _by_verdict(counts: Mapping[Verdict, int]) -> Labelled:
    return [((verdict.value,), count) for verdict, count in counts.items()]


def _rates(
    known: Mapping[Verdict, RateEstimate] | Mapping[audit_result_metrics.KeyProperty, RateEstimate],
) -> Labelled:
    for of, (estimate, interval) in known.items():
        yield (of.value, Bound.ESTIMATE), estimate
        if interval is not None:
            yield (of.value, Bound.LOWER), interval.lower
            yield (of.value, Bound.UPPER), interval.upper


def _latency(figures: AuditFigures) -> Labelled:
    for measure, percentiles in figures.latency.items():
        for q, (lower, upper) in percentiles.items():
            yield (measure.value, percentile_name(q), Bound.LOWER), lower
            yield (measure.value, percentile_name(q), Bound.UPPER), upper


_FIGURES: Final[tuple[tuple[Metric, Callable[[AuditFigures], Labelled]], ...]] = (
    (
        audit_result_metrics.AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.finished_at),
    ),
    (
        audit_result_metrics.AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.header.window.end),
    ),
    (
        audit_result_metrics.AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.complete_up_to),
    ),
    (audit_result_metrics.AUDIT_RECORDS, lambda each: _by_verdict(each.counts)),
    (
        audit_result_metrics.AUDIT_FAULTS_RECORDS,
        lambda each: _single(sum(each.counts[of] for of in FAULTS)),
    ),
    (audit_result_metrics.AUDIT_UNAUDITED_TOPICS, lambda each: _single(each.unaudited)),
    (audit_result_metrics.AUDIT_SAMPLED_RATIO, lambda each: _single(each.run.header.sample_rate)),
    (audit_result_metrics.AUDIT_RECORD_SIZE_BYTES, lambda each: _single(each.record_size)),
    (audit_result_metrics.AUDIT_RECORDS_RATIO, lambda each: _rates(each.records)),
    (audit_result_metrics.AUDIT_KEYS_RATIO, lambda each: _rates(each.keys)),
    (audit_result_metrics.AUDIT_LATENCY_SECONDS, _latency),
    (audit_result_metrics.AUDIT_EVIDENCE_RECORDS, lambda each: _by_verdict(each.evidence)),
    (audit_result_metrics.AUDIT_UNEVIDENCED_RECORDS, lambda each: _by_verdict(each.unevidenced)),
)
"""Each metric of a flow with its figures, in the order of the catalogue."""
