"""The series of a fleet that the dashboards read, as written by exporters and rules."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from zlib import crc32

from tsdb import SamplePattern, Series

from fleet_history import sample_patterns
from fleet_history.fleet_shape import Shape
from mm2slo_core.catalogue import ALL
from mm2slo_core.catalogue.flow_metrics import (
    FAILOVER_BLOCKED,
    FAILOVER_READY,
    FLOW_INFO,
    SLI_EVENTS_TOTAL,
    TOPIC_INFO,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS, Metric, MetricType
from mm2slo_core.catalogue.prometheus_series import (
    ALERTS,
    ALERTS_FOR_STATE,
    BUDGET_REMAINING,
    CHAIN_WINDOWS,
    COVERAGE,
    EXCLUDED_STEP,
    EXTERNAL,
    MAINTENANCE_ACTIVE,
    OBJECTIVE,
    RECORDED,
    UP,
    WINDOW,
    RecordedSeries,
)
from mm2slo_core.catalogue.service_metrics import EXPORTER_FLOW_READY, REPORT_GROUPS
from mm2slo_core.indicators.group_readiness import BlockReason

_SCRAPE, _EVALUATION, _STEP = 15, 30, 300
RAW: Final = SLI_EVENTS_TOTAL
"""A counter that no dashboard reads, present for one SLI."""
_ALWAYS_ONE: Final = {metric.name for metric in (FLOW_INFO, TOPIC_INFO, EXPORTER_FLOW_READY, UP)}
_SLOW: Final = (WINDOW, "step5m", *CHAIN_WINDOWS)
_REPORTED: Final = tuple(itertools.chain(*REPORT_GROUPS.values()))
_IN_MAINTENANCE, _WITH_ALERTS = 3, 10
"""Numbers of flows."""

Pairs = tuple[tuple[str, str], ...]


def fleet_series(shape: Shape, lookback: Mapping[str, float], end: int) -> Iterator[Series]:
    """The series named in *lookback*, each as many seconds back from *end* (epoch)."""
    since = {name: end - int(seconds) for name, seconds in lookback.items()}
    for metric in (*ALL, *_REPORTED, *EXTERNAL):
        for name in since.keys() & {*metric.sample_names}:
            yield from _scraped(shape, metric, name, since[name])
    for series in RECORDED:
        if series.name in since:
            yield from _recorded(shape, series, since[series.name])
    for name in since.keys() & {ALERTS, ALERTS_FOR_STATE}:
        yield from _alerts(shape, name, since[name])


def _scraped(shape: Shape, metric: Metric, name: str, since: int) -> Iterator[Series]:
    targets = [(("job", _job(metric)), ("instance", "one:9000"))]
    if metric in ALL or metric is UP:
        targets = [(("job", "mm2slo"), ("instance", f"{n}:9469")) for n in range(shape.replicas)]
    for labels in _labels(shape, metric):
        for le, target in itertools.product(_bounds(metric, name), targets):
            yield _series(name, (*labels, *le, *target), _samples(metric, labels), since)


def _labels(shape: Shape, metric: Metric) -> Iterator[Pairs]:
    own = metric.labels_at(max(shape.granularity, metric.coarsest))
    flows: Iterable[Pairs] = [()]
    if metric.per_flow:
        own, flows = own[len(FLOW_LABELS) :], shape.flow_labels
    for flow in flows:
        # A flow measures its own two clusters, not each cluster of the fleet.
        of_flow = {"cluster": [value for _, value in flow[1:]]}
        several = (
            [[pair] for pair in shape.indicators[0]]
            if metric is RAW
            else [
                [(label, v) for v in of_flow.get(label) or shape.values(metric.name, label)]
                for label in own
            ]
        )
        for rest in itertools.product(*several):
            yield (*flow, *rest)


def _bounds(metric: Metric, name: str) -> list[Pairs]:
    if not name.endswith("_bucket"):
        return [()]
    return [(("le", f"{bound:g}"),) for bound in (*metric.buckets, float("inf"))]


def _samples(metric: Metric, labels: Pairs) -> SamplePattern:
    kind = _kind(labels)
    if metric.type is not MetricType.GAUGE:
        return sample_patterns.rising(kind % 4, _SCRAPE)
    value = _constant(metric, dict(labels), kind)
    return (
        sample_patterns.varying(kind, _SCRAPE)
        if value is None
        else sample_patterns.constant(value, _SCRAPE)
    )


def _constant(metric: Metric, labels: Mapping[str, str], kind: int) -> float | None:
    """The value of a series that seldom changes."""
    if metric is FAILOVER_READY:
        return float(kind > 0)
    if metric is FAILOVER_BLOCKED:
        return float(labels["reason"] == BlockReason.CHECKPOINT_STALE)
    if "state" in labels:
        return float(labels["state"] in {"running", "finished"})
    if metric in _REPORTED:
        return float(kind)
    return 1.0 if metric.name in _ALWAYS_ONE else None


def _recorded(shape: Shape, series: RecordedSeries, since: int) -> Iterator[Series]:
    slow = series in {BUDGET_REMAINING, *COVERAGE.values()} or series.name.endswith(_SLOW)
    step = _STEP if slow else _EVALUATION
    rare = series in {MAINTENANCE_ACTIVE, EXCLUDED_STEP}
    flows = shape.flow_labels[:_IN_MAINTENANCE] if rare else shape.flow_labels
    indicators = shape.indicators if "sli" in series.labels else [()]
    objective_labels = (("severity", "page"), ("owner", "platform"), ("channel", "mirroring"))
    more = objective_labels if series is OBJECTIVE else ()
    base = (
        1.0
        if series.name.startswith("flow:mm2_slo_coverage")
        else 0.6
        if series is BUDGET_REMAINING
        else 0.0
    )
    for flow, indicator in itertools.product(flows, indicators):
        given = (*flow, *indicator, *more)
        if len(set(series.labels)) != len(given):
            raise ValueError(f"{series.name} has the labels {series.labels}: given were {given}")
        yield _series(
            series.name, given, sample_patterns.share(_kind(given), step, base=base), since
        )


def _alerts(shape: Shape, series: str, since: int) -> Iterator[Series]:
    state = (("alertstate", "firing"),) if series == ALERTS else ()
    value = 1.0 if series == ALERTS else float(since)
    for flow in shape.flow_labels[:_WITH_ALERTS]:
        for name, severity in (("MM2FlowStopped", "page"), ("MM2ErrorBudgetBurn", "ticket")):
            given = (("alertname", name), *state, ("severity", severity), *flow)
            yield _series(series, given, sample_patterns.constant(value, _EVALUATION), since)


def _job(metric: Metric) -> str:
    return "mm2slo-report" if metric in _REPORTED else "prometheus"


def _series(name: str, labels: Pairs, pattern: SamplePattern, since: int) -> Series:
    return Series(tuple(sorted((("__name__", name), *labels))), pattern, since)


def _kind(labels: Pairs) -> int:
    return crc32(repr(labels).encode()) % sample_patterns.KINDS
