"""A month of a large fleet in a Prometheus, and the dashboards' queries as Grafana sends them.

The series come from the catalogue, so an added panel finds its own.
"""

from __future__ import annotations

import itertools
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple
from zlib import crc32

from dashboard_preview import time_range
from generated_dashboards import Json, fill_variables, panels
from tsdb import MAX_SAMPLES, SamplePattern, Series

from mm2slo_core.audit.unit_outcome import PERCENTILES, Verdict, percentile_name
from mm2slo_core.catalogue import ALL
from mm2slo_core.catalogue.flow_metrics import (
    CHECKPOINT_LAG_RECORDS,
    CONNECTOR_STATE,
    FAILOVER_BLOCKED,
    FAILOVER_READY,
    FLOW_INFO,
    FLOW_STATE,
    GROUP_LAG_RECORDS,
    GROUP_LAG_SECONDS,
    SLI_EVENTS_TOTAL,
    TASK_STATE,
    TOPIC_INFO,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS, Granularity, Metric, MetricType
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
from mm2slo_core.catalogue.service_metrics import (
    AUDIT_KEYS_RATIO,
    AUDIT_RECORDS_RATIO,
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_FLOW_READY,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
    REPORT_GROUPS,
    Bound,
    KeyProperty,
    LatencyMeasure,
)
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.group_readiness import BlockReason
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.quantity_text import parse_duration
from mm2slo_core.records.connect_records import ConnectState
from mm2slo_dashboards.dashboard_files import find_series
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_exporter.readers.internals_store import InternalTopic

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
        return rising(kind % 4, _SCRAPE)
    value = _constant(metric, dict(labels), kind)
    return varying(kind, _SCRAPE) if value is None else constant(value, _SCRAPE)


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
        yield _series(series.name, given, share(_kind(given), step, base=base), since)


def _alerts(shape: Shape, series: str, since: int) -> Iterator[Series]:
    state = (("alertstate", "firing"),) if series == ALERTS else ()
    value = 1.0 if series == ALERTS else float(since)
    for flow in shape.flow_labels[:_WITH_ALERTS]:
        for name, severity in (("MM2FlowStopped", "page"), ("MM2ErrorBudgetBurn", "ticket")):
            given = (("alertname", name), *state, ("severity", severity), *flow)
            yield _series(series, given, constant(value, _EVALUATION), since)


def _job(metric: Metric) -> str:
    return "mm2slo-report" if metric in _REPORTED else "prometheus"


def _series(name: str, labels: Pairs, pattern: SamplePattern, since: int) -> Series:
    return Series(tuple(sorted((("__name__", name), *labels))), pattern, since)


def _kind(labels: Pairs) -> int:
    return crc32(repr(labels).encode()) % KINDS


TARGETS: Final = 10
_CONNECT: Final = tuple(state.value.lower() for state in ConnectState)

_VALUES: Final = {
    "policy": ("default",),
    "separator": (".",),
    "engine": ("connect",),
    "canary": ("heartbeats",),
    "heartbeats": ("on",),
    "carrier": ("heartbeats",),
    "target_topic": ("copy",),
    "quality": tuple(each.value for each in PositionQuality)[:3],
    "limit": ("time", "size"),
    "config": ("retention.ms", "max.message.bytes"),
    "side": ("source", "target"),
    "bound": ("lower", "upper"),
    "connector": ("MirrorSourceConnector", "MirrorCheckpointConnector"),
    # About as many as one cluster has: no cluster is both source and target of everything.
    "stage": tuple(each.value for each in CollectionStage)[:9],
    "reason": ("timed_out", "not_authorised"),
    "api": ("list_offsets", "metadata", "find_coordinator", "offset_fetch", "describe_configs"),
    "kind": tuple(each.value for each in InternalTopic),
    "granularity": tuple(each.label for each in Granularity),
    "verdict": tuple(each.value for each in Verdict),
    "property": tuple(each.value for each in KeyProperty),
    "measure": tuple(each.value for each in LatencyMeasure),
    "percentile": tuple(map(percentile_name, PERCENTILES)),
    "exporter": ("a:9469", "b:9469"),
    "integration": ("slack", "webhook"),
    "rule_group": tuple(
        f"/etc/prometheus/mm2slo.rules.yml;mm2slo-{name}"
        for name in ("events", "steps", "window", "burn", "flows", "pipeline")
    ),
}

_METRIC_VALUES: Final = {
    (FLOW_STATE.name, "state"): tuple(each.value for each in FlowStateName),
    (CONNECTOR_STATE.name, "state"): _CONNECT,
    (TASK_STATE.name, "state"): _CONNECT,
    **{
        (metric.name, "bound"): tuple(each.value for each in Bound)
        for metric in (AUDIT_RECORDS_RATIO, AUDIT_KEYS_RATIO)
    },
    ("mm2_audit_runs", "state"): ("running", "finished", "failed"),
    (FAILOVER_BLOCKED.name, "reason"): tuple(each.value for each in BlockReason),
    (EXPORTER_COLLECT_ERRORS_TOTAL.name, "reason"): ("timed_out", "not_authorised", "no_leader"),
    # Counters that only some series have.
    (EXPORTER_COLLECT_ERRORS_TOTAL.name, "cluster"): ("c0", "c1"),
    (EXPORTER_MALFORMED_RECORDS_TOTAL.name, "cluster"): ("c0", "c1"),
    # A group reads two of the topics.
    **{
        (metric.name, "topic"): ("topic-0", "topic-1")
        for metric in (CHECKPOINT_LAG_RECORDS, GROUP_LAG_RECORDS, GROUP_LAG_SECONDS)
    },
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A fleet: the topics, groups and tasks per connector of each flow."""

    flows: int = 100
    topics: int = 20
    partitions: int = 5
    groups: int = 20
    tasks: int = 4
    replicas: int = 2
    granularity: Granularity = Granularity.TOPIC

    @property
    def flow_labels(self) -> Sequence[tuple[tuple[str, str], ...]]:
        """The labels of each flow."""
        return [
            tuple(
                zip(FLOW_LABELS, (f"c{n}->d{n % TARGETS}", f"c{n}", f"d{n % TARGETS}"), strict=True)
            )
            for n in range(self.flows)
        ]

    @property
    def indicators(self) -> Sequence[tuple[tuple[str, str], ...]]:
        """The labels of each SLI of a flow that has an objective by default."""
        keys = [rule.key for rule in default_objective_rules()]
        return [(("sli", key.sli.value), ("tier", key.tier)) for key in keys]

    def values(self, metric: str, label: str) -> Sequence[str]:
        """The values of *label* of *metric*; KeyError for an unknown label."""
        if found := _METRIC_VALUES.get((metric, label)):
            return found
        counted = {
            "topic": self.topics,
            "partition": self.partitions,
            "group": self.groups,
            "task": self.tasks,
        }
        if label in counted:
            prefix = "" if label in {"partition", "task"} else f"{label}-"
            return [f"{prefix}{n}" for n in range(counted[label])]
        if label == "cluster":
            targets = min(TARGETS, self.flows)
            return [*(f"c{n}" for n in range(self.flows)), *(f"d{n}" for n in range(targets))]
        return _VALUES[label]


POINTS: Final = 1_000
"""Points of a panel without a limit: one a pixel of half a usual screen."""
_SCRAPE_SECONDS: Final = 15.0

_BEFORE: Final = 3_600.0
"""Seconds that rates and the latest sample look back from the first point."""

_ANNOTATION_STEP: Final = 60.0
"""Seconds: the smallest step of annotations."""


class PanelQuery(NamedTuple):
    """A query of a panel over `span`; `step` is 0 for an instant query."""

    panel: str
    kind: str
    text: str
    span: time_range.Span
    step: float


class QueryCost(NamedTuple):
    """The size of the result and the cost of a query.

    `series` counts all series, `at_once` the most at one time; `samples` were read, at most `peak`
    of them in memory at a time. `error` is Prometheus's error, as for too many samples.
    """

    query: PanelQuery
    duration: float
    series: int = 0
    at_once: int = 0
    samples: int = 0
    peak: int = 0
    error: str = ""


def dashboard_queries(dashboard: Json, flow: str, now: float) -> Iterator[PanelQuery]:
    """The queries of its panels and annotations over its default time range.

    All is selected where possible, else *flow*.
    """
    back = dashboard["time"]["from"].removeprefix("now-")
    default = time_range.Span(now - parse_duration(back), now)

    def fill(text: str, span: time_range.Span, step: float) -> str:
        return fill_variables(dashboard, text, flow, span.builtin(step, _SCRAPE_SECONDS))

    for panel in panels(dashboard):
        own = panel.get("timeFrom")
        span = time_range.Span(now - parse_duration(own), now) if own else default
        step = span.step(panel.get("maxDataPoints") or POINTS, _SCRAPE_SECONDS)
        if panel.get("interval"):
            step = max(step, parse_duration(panel["interval"]))
        for target in panel["targets"]:
            text = fill(target["expr"], span, step)
            query_step = 0.0 if target["instant"] else step
            yield PanelQuery(panel["title"], panel["type"], text, span, query_step)
    for annotation in dashboard["annotations"]["list"]:
        step = max(default.step(POINTS, _SCRAPE_SECONDS), _ANNOTATION_STEP)
        title = f"annotation: {annotation['name']}"
        yield PanelQuery(
            title, "annotation", fill(annotation["expr"], default, step), default, step
        )


def lookback(queries: Iterable[PanelQuery]) -> dict[str, float]:
    """How far back *queries* look, in seconds by series name."""
    found: dict[str, float] = {}
    for query in queries:
        for name in find_series(query.text):
            found[name] = max(found.get(name, 0.0), query.span.length + _BEFORE)
    return found


def run_query(url: str, query: PanelQuery) -> QueryCost:
    """Run *query* against the Prometheus at *url*."""
    parameters: dict[str, str] = {"query": query.text, "stats": "all"}
    if query.step:
        span = query.span.aligned(query.step)
        parameters |= {"start": f"{span.start}", "end": f"{span.end}", "step": f"{query.step}"}
    else:
        parameters["time"] = f"{query.span.end}"
    path = "query_range" if query.step else "query"
    body = urllib.parse.urlencode(parameters).encode()
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", body, timeout=120) as reply:
            text = reply.read()
    except urllib.error.HTTPError as error:
        with error:
            said = json.load(error)["error"]
        return QueryCost(query, time.perf_counter() - started, error=said)
    took = time.perf_counter() - started
    data = json.loads(text)["data"]
    samples = data["stats"]["samples"]
    times = Counter(
        at for each in data["result"] for at, _ in each.get("values", [each.get("value")])
    )
    return QueryCost(
        query,
        took,
        len(data["result"]),
        max(times.values(), default=0),
        samples["totalQueryableSamples"],
        samples["peakSamples"],
    )


_LENGTH: Final = 4 * MAX_SAMPLES

KINDS: Final = 8
"""The number of patterns of each kind."""


@cache
def constant(value: float, step: int) -> SamplePattern:
    """Always *value*."""
    return SamplePattern(step, (value,) * _LENGTH)


@cache
def varying(kind: int, step: int) -> SamplePattern:
    """Random integers up to a bound by kind."""
    draw = random.Random(kind)
    return SamplePattern(
        step, tuple(float(draw.randrange(10 * (kind + 1))) for _ in range(_LENGTH))
    )


@cache
def rising(kind: int, step: int) -> SamplePattern:
    """A counter that resets after a while."""
    return SamplePattern(step, tuple(float(n * (kind + 1)) for n in range(_LENGTH)))


@cache
def share(kind: int, step: int, *, base: float) -> SamplePattern:
    """A ratio at *base* that differs from it now and then."""
    draw = random.Random(kind)
    values: list[float] = []
    while len(values) < _LENGTH:
        value = base + draw.uniform(-0.5, 0.5) if draw.random() < 0.1 else base
        values += [value] * 12
    return SamplePattern(step, tuple(values[:_LENGTH]))
