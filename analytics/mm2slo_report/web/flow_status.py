"""Current state, throughput and consumer groups of flows, from the exporters' `/metrics`."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from itertools import chain
from typing import Final, NamedTuple, Protocol, TypeAlias

from prometheus_client.samples import Sample

from mm2slo_core.catalogue import flow_metrics
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.topology import Flow
from mm2slo_report.cutover_facts import EVIDENCE
from mm2slo_report.recording.scraped_counters import parse_sample
from mm2slo_report.rendering.page_views import (
    FlowStatusView,
    GroupLag,
    GroupView,
    RecordBounds,
    RecordLag,
    ThroughputView,
    Unreplicated,
)
from mm2slo_report.sli_source import SliSourceError

_GROUP_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    flow_metrics.FAILOVER_COMMITS_AGE_SECONDS.name: (),
    flow_metrics.FAILOVER_GROUP_UNREPLICATED_RECORDS.name: (),
    flow_metrics.FAILOVER_GROUP_UNREPLICATED_SECONDS.name: (),
    flow_metrics.FAILOVER_REDELIVERY_RECORDS.name: ("bound",),
    flow_metrics.FAILOVER_SKIPPED_RECORDS.name: ("bound",),
    flow_metrics.CHECKPOINT_LAG_RECORDS.name: ("topic",),
    flow_metrics.GROUP_LAG_RECORDS.name: ("cluster", "topic"),
    flow_metrics.GROUP_LAG_SECONDS.name: ("cluster", "topic"),
}
"""Labels that distinguish the values of a group, by metric."""

_GroupValues: TypeAlias = "dict[tuple[str, ...], float]"
"""By metric and the values of its `_GROUP_LABELS`."""

_UNREPLICATED: Final = (
    flow_metrics.FAILOVER_UNREPLICATED_RECORDS.name,
    flow_metrics.FAILOVER_UNREPLICATED_SECONDS.name,
    flow_metrics.FAILOVER_UNREPLICATED_AGE_SECONDS.name,
)
THROUGHPUT_COUNTERS: Final = (
    flow_metrics.SOURCE_RECORDS_TOTAL.name,
    flow_metrics.REPLICATED_RECORDS_TOTAL.name,
)
_READY: Final = flow_metrics.FAILOVER_READY.name
_BLOCKED: Final = flow_metrics.FAILOVER_BLOCKED.name
_STATE: Final = flow_metrics.FLOW_STATE.name
_LAG_RECORDS: Final = flow_metrics.FLOW_LAG_RECORDS.name
_LAG_SECONDS: Final = flow_metrics.FLOW_LAG_SECONDS.name
_HEADROOM: Final = flow_metrics.RETENTION_HEADROOM_SECONDS.name
_FAMILIES: Final = (
    *(_READY, _BLOCKED, _STATE, _LAG_RECORDS, _LAG_SECONDS, _HEADROOM),
    *_GROUP_LABELS,
    *_UNREPLICATED,
    *THROUGHPUT_COUNTERS,
)

_STATE_PRECEDENCE: Final = ("stopped", "running", "idle", "unknown")
"""If replicas disagree on a flow's state, the first of these wins."""


class Fetch(Protocol):
    """Reads a page of an exporter. Raises SliSourceError."""

    def __call__(self, address: str, path: str = "/metrics") -> Iterable[str]:
        """The lines of *path* at *address*."""


_WITHOUT_EVIDENCE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE})
"""An exporter of other flows; one that reads what only a cutover needs from the next round on."""


class ExporterFlowStatus:
    """Queries every exporter on each call; *fetch* returns lines or raises SliSourceError.

    Fails only if every exporter fails. Throughput is that of the first replica that has it.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        fetch: Fetch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = tuple(addresses)
        self._fetch = fetch
        self._meters = {address: ThroughputMeter(clock) for address in addresses}

    def flows(self) -> tuple[FlowStatusView, ...]:
        pages = self._pages()
        throughput: dict[Flow, ThroughputView] = {}
        for address, samples in pages.items():
            throughput = self._meters[address].read(samples) | throughput
        return tuple(
            replace(view, throughput=throughput.get(view.flow))
            for view in flow_views(chain.from_iterable(pages.values()))
        )

    def groups(self) -> tuple[GroupView, ...]:
        return group_views(chain.from_iterable(self._pages().values()))

    def cutover(self, flow: Flow) -> CutoverEvidence | None:
        """What the exporter knows that has watched the flow longest; None if none has read it."""
        found: list[CutoverEvidence] = []
        problems: list[SliSourceError] = []
        for address in self._addresses:
            try:
                lines = self._fetch(address, f"/flows/{flow.slug}/cutover")
                found.append(EVIDENCE.validate_json("\n".join(lines)))
            except SliSourceError as problem:
                if problem.status not in _WITHOUT_EVIDENCE:
                    problems.append(problem)
        if problems and len(problems) == len(self._addresses):
            raise problems[0]
        return min(
            found,
            key=lambda each: (bool(each.waiting_for or each.unreadable), each.watched_since),
            default=None,
        )

    def _pages(self) -> dict[str, list[Sample]]:
        found: dict[str, list[Sample]] = {}
        problems: list[SliSourceError] = []
        for address in self._addresses:
            try:
                found[address] = list(parse_samples(self._fetch(address)))
            except SliSourceError as problem:
                problems.append(problem)
        if problems and len(problems) == len(self._addresses):
            raise problems[0]
        return found


def parse_samples(lines: Iterable[str]) -> Iterator[Sample]:
    """Samples of the needed families, without invalid lines."""
    for line in lines:
        if not line.startswith(_FAMILIES):
            continue
        with suppress(ValueError):
            sample = parse_sample(line)
            if sample.name in _FAMILIES:
                yield sample


def flow_views(found: Iterable[Sample]) -> tuple[FlowStatusView, ...]:
    """Flows in *found*, sorted."""
    states: defaultdict[Flow, set[str]] = defaultdict(set)
    lags: dict[str, dict[Flow, float]] = {name: {} for name in _FAMILIES}
    for each in found:
        flow = _flow(each)
        if flow is None:
            continue
        if each.name == _STATE:
            states[flow] |= {each.labels.get("state", "")} if each.value else set()
        else:
            worse = min if each.name == _HEADROOM else max
            lags[each.name][flow] = worse(each.value, lags[each.name].get(flow, each.value))
    return tuple(
        FlowStatusView(
            flow=flow,
            state=next((each for each in _STATE_PRECEDENCE if each in seen), None),
            lag_records=lags[_LAG_RECORDS].get(flow),
            lag_seconds=lags[_LAG_SECONDS].get(flow),
            headroom_seconds=lags[_HEADROOM].get(flow),
            unreplicated=Unreplicated(*(lags[each].get(flow) for each in _UNREPLICATED)),
        )
        for flow, seen in sorted(states.items())
    )


def group_views(found: Iterable[Sample]) -> tuple[GroupView, ...]:
    """Groups in *found*; if replicas disagree, the worse result wins."""
    ready: dict[tuple[Flow, str], bool] = {}
    reasons: defaultdict[tuple[Flow, str], set[str]] = defaultdict(set)
    values: defaultdict[tuple[Flow, str], _GroupValues] = defaultdict(dict)
    for each in found:
        flow, group = _flow(each), each.labels.get("group")
        if flow is None or group is None:
            continue
        key = (flow, group)
        if each.name == _READY:
            ready[key] = ready.get(key, True) and each.value > 0
        elif each.name == _BLOCKED and each.value:
            reasons[key].add(each.labels.get("reason", ""))
        elif each.name in _GROUP_LABELS:
            labels = (each.labels.get(label, "") for label in _GROUP_LABELS[each.name])
            value = (each.name, *labels)
            values[key][value] = max(each.value, values[key].get(value, each.value))
    return tuple(
        _group_view(flow, group, verdict, reasons[flow, group], values[flow, group])
        for (flow, group), verdict in sorted(ready.items())
    )


def _group_view(
    flow: Flow, group: str, ready: bool, reasons: Iterable[str], values: _GroupValues
) -> GroupView:
    def bounds(metric: Metric) -> RecordBounds:
        return RecordBounds(*(values.get((metric.name, bound)) for bound in ("lower", "upper")))

    def single(metric: Metric) -> float | None:
        return values.get((metric.name,))

    checkpoint_lags = _by_label(values, flow_metrics.CHECKPOINT_LAG_RECORDS).values()
    return GroupView(
        flow=flow,
        group=group,
        ready=ready,
        reasons=tuple(sorted(reasons)),
        checkpoint_lag_records=sum(checkpoint_lags) if checkpoint_lags else None,
        redelivery_records=bounds(flow_metrics.FAILOVER_REDELIVERY_RECORDS),
        skipped_records=bounds(flow_metrics.FAILOVER_SKIPPED_RECORDS),
        commits_age_seconds=single(flow_metrics.FAILOVER_COMMITS_AGE_SECONDS),
        unreplicated=RecordLag(
            single(flow_metrics.FAILOVER_GROUP_UNREPLICATED_RECORDS),
            single(flow_metrics.FAILOVER_GROUP_UNREPLICATED_SECONDS),
        ),
        lag=GroupLag(_lag_on(flow.source, values), _lag_on(flow.target, values)),
    )


def _by_label(values: _GroupValues, metric: Metric, *labels: str) -> dict[str, float]:
    """The values of *metric* whose first labels are *labels*, by the last one."""
    first = (metric.name, *labels)
    return {name[-1]: value for name, value in values.items() if name[:-1] == first}


def _lag_on(cluster: str, values: _GroupValues) -> RecordLag:
    """The lag on *cluster* over topics; its age is unknown if that of a topic is."""
    records = _by_label(values, flow_metrics.GROUP_LAG_RECORDS, cluster)
    if not records:
        return RecordLag()
    ages = _by_label(values, flow_metrics.GROUP_LAG_SECONDS, cluster)
    oldest = max(ages[topic] for topic in records) if ages.keys() >= records.keys() else None
    return RecordLag(sum(records.values()), oldest)


def _flow(sample: Sample) -> Flow | None:
    source, target = sample.labels.get("source"), sample.labels.get("target")
    return Flow(source, target) if source and target else None


_LEAST_SECONDS: Final = 60.0
"""Between two readings: some polls of the exporter."""

_Counters: TypeAlias = "dict[tuple[Flow, str, str], float]"
"""By flow, metric and topic."""


class _Reading(NamedTuple):
    at: float
    counters: _Counters


class ThroughputMeter:
    """The throughput of the flows of one exporter between its last two readings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: _Reading | None = None
        self._found: dict[Flow, ThroughputView] = {}

    def read(self, samples: Iterable[Sample]) -> dict[Flow, ThroughputView]:
        """Throughput by flow, of readings that are a minute apart or more; else none."""
        now, last = self._clock(), self._last
        if last is not None and now - last.at < _LEAST_SECONDS:
            return self._found
        counters: _Counters = {
            (Flow(each.labels["source"], each.labels["target"]), each.name, topic): each.value
            for each in samples
            if each.name in THROUGHPUT_COUNTERS
            for topic in (each.labels.get("topic", ""),)
        }
        self._last = _Reading(now, counters)
        if last is not None:
            self._found = _throughput(last.counters, counters, now - last.at)
        return self._found


def _throughput(before: _Counters, after: _Counters, seconds: float) -> dict[Flow, ThroughputView]:
    """Topics that are new, or whose counter was reset by a restart, do not count."""
    grown: defaultdict[Flow, dict[str, float]] = defaultdict(dict)
    for (flow, name, topic), value in after.items():
        records = value - before.get((flow, name, topic), value)
        if (flow, name, topic) in before and records >= 0:
            grown[flow][name] = grown[flow].get(name, 0.0) + records
    return {
        flow: ThroughputView(
            seconds,
            *(
                None if name not in records else records[name] / seconds
                for name in THROUGHPUT_COUNTERS
            ),
        )
        for flow, records in grown.items()
    }
