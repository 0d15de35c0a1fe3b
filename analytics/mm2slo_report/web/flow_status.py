"""Current state, throughput and consumer groups of flows, from the exporters' `/metrics`."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from prometheus_client.samples import Sample

from mm2slo_core.catalogue.flow_metrics import (
    CHECKPOINT_LAG_RECORDS,
    FAILOVER_BLOCKED,
    FAILOVER_COMMITS_AGE_SECONDS,
    FAILOVER_GROUP_UNREPLICATED_RECORDS,
    FAILOVER_GROUP_UNREPLICATED_SECONDS,
    FAILOVER_READY,
    FAILOVER_REDELIVERY_RECORDS,
    FAILOVER_SKIPPED_RECORDS,
    FAILOVER_UNREPLICATED_AGE_SECONDS,
    FAILOVER_UNREPLICATED_RECORDS,
    FAILOVER_UNREPLICATED_SECONDS,
    FLOW_LAG_RECORDS,
    FLOW_LAG_SECONDS,
    FLOW_STATE,
    GROUP_LAG_RECORDS,
    GROUP_LAG_SECONDS,
    REPLICATED_RECORDS_TOTAL,
    RETENTION_HEADROOM_SECONDS,
    SOURCE_RECORDS_TOTAL,
)
from mm2slo_core.topology import Flow
from mm2slo_report.recording.scraped_counters import parse_sample
from mm2slo_report.rendering.page_views import FlowStatusView, GroupView, LagView, ThroughputView
from mm2slo_report.sli_source import SliSourceError

_FAMILIES: Final = tuple(
    each.name
    for each in (
        CHECKPOINT_LAG_RECORDS, FAILOVER_BLOCKED, FAILOVER_COMMITS_AGE_SECONDS,
        FAILOVER_GROUP_UNREPLICATED_RECORDS, FAILOVER_GROUP_UNREPLICATED_SECONDS, FAILOVER_READY,
        FAILOVER_REDELIVERY_RECORDS, FAILOVER_SKIPPED_RECORDS, FAILOVER_UNREPLICATED_AGE_SECONDS,
        FAILOVER_UNREPLICATED_RECORDS, FAILOVER_UNREPLICATED_SECONDS, FLOW_LAG_RECORDS,
        FLOW_LAG_SECONDS, FLOW_STATE, GROUP_LAG_RECORDS, GROUP_LAG_SECONDS,
        REPLICATED_RECORDS_TOTAL, RETENTION_HEADROOM_SECONDS, SOURCE_RECORDS_TOTAL,
    )
)  # fmt: skip

_OF_GROUP: Final = frozenset(
    each.name
    for each in (
        FAILOVER_COMMITS_AGE_SECONDS,
        FAILOVER_GROUP_UNREPLICATED_RECORDS,
        FAILOVER_GROUP_UNREPLICATED_SECONDS,
    )
)
_BOUNDED: Final = frozenset({FAILOVER_REDELIVERY_RECORDS.name, FAILOVER_SKIPPED_RECORDS.name})
_GROUP_LAGS: Final = frozenset({GROUP_LAG_RECORDS.name, GROUP_LAG_SECONDS.name})

_STATE_PRECEDENCE: Final = ("stopped", "running", "idle", "unknown")
"""If replicas disagree on a flow's state, the first of these wins."""


class ExporterFlowStatus:
    """Queries every exporter on each call; *fetch* returns lines or raises SliSourceError.

    Fails only if every exporter fails. Throughput is that of the first replica that has it.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        fetch: Callable[[str], Iterable[str]],
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
        if each.name == FLOW_STATE.name:
            states[flow] |= {each.labels.get("state", "")} if each.value else set()
        elif each.name == RETENTION_HEADROOM_SECONDS.name:
            lags[each.name][flow] = min(each.value, lags[each.name].get(flow, each.value))
        else:
            lags[each.name][flow] = max(each.value, lags[each.name].get(flow, each.value))
    return tuple(
        FlowStatusView(
            flow=flow,
            state=next((each for each in _STATE_PRECEDENCE if each in seen), None),
            lag_records=lags[FLOW_LAG_RECORDS.name].get(flow),
            lag_seconds=lags[FLOW_LAG_SECONDS.name].get(flow),
            headroom_seconds=lags[RETENTION_HEADROOM_SECONDS.name].get(flow),
            unreplicated_records=lags[FAILOVER_UNREPLICATED_RECORDS.name].get(flow),
            unreplicated_seconds=lags[FAILOVER_UNREPLICATED_SECONDS.name].get(flow),
            unreplicated_age=lags[FAILOVER_UNREPLICATED_AGE_SECONDS.name].get(flow),
        )
        for flow, seen in sorted(states.items())
    )


def group_views(found: Iterable[Sample]) -> tuple[GroupView, ...]:
    """Groups in *found*; if replicas disagree, the worse result wins."""
    ready: dict[tuple[Flow, str], bool] = {}
    reasons: defaultdict[tuple[Flow, str], set[str]] = defaultdict(set)
    lags: dict[tuple[Flow, str, str], float] = {}
    topics: dict[tuple[Flow, str, str], float] = {}
    unread: dict[tuple[Flow, str, str, str, str], float] = {}
    for each in found:
        flow, group = _flow(each), each.labels.get("group")
        if flow is None or group is None:
            continue
        key = (flow, group)
        if each.name == FAILOVER_READY.name:
            ready[key] = ready.get(key, True) and each.value > 0
        elif each.name == FAILOVER_BLOCKED.name and each.value:
            reasons[key].add(each.labels.get("reason", ""))
        elif each.name in _BOUNDED:
            bound = (*key, each.name + each.labels.get("bound", ""))
            lags[bound] = max(each.value, lags.get(bound, each.value))
        elif each.name == CHECKPOINT_LAG_RECORDS.name:
            topic = (*key, each.labels.get("topic", ""))
            topics[topic] = max(each.value, topics.get(topic, each.value))
        elif each.name in _GROUP_LAGS:
            cluster, name = each.labels.get("cluster", ""), each.labels.get("topic", "")
            part = (*key, cluster, name, each.name)
            unread[part] = max(each.value, unread.get(part, each.value))
        elif each.name in _OF_GROUP:
            measure = (*key, each.name)
            lags[measure] = max(each.value, lags.get(measure, each.value))
    checkpoint: dict[tuple[Flow, str], float] = {}
    for (flow, group, _), lag in topics.items():
        checkpoint[flow, group] = checkpoint.get((flow, group), 0.0) + lag
    sides = _group_lags(unread)
    return tuple(
        GroupView(
            flow=flow,
            group=group,
            ready=verdict,
            reasons=tuple(sorted(reasons[flow, group])),
            checkpoint_lag=checkpoint.get((flow, group)),
            redelivery_lower=lags.get((flow, group, FAILOVER_REDELIVERY_RECORDS.name + "lower")),
            redelivery_upper=lags.get((flow, group, FAILOVER_REDELIVERY_RECORDS.name + "upper")),
            skipped_lower=lags.get((flow, group, FAILOVER_SKIPPED_RECORDS.name + "lower")),
            skipped_upper=lags.get((flow, group, FAILOVER_SKIPPED_RECORDS.name + "upper")),
            commits_age=lags.get((flow, group, FAILOVER_COMMITS_AGE_SECONDS.name)),
            unreplicated_records=lags.get((flow, group, FAILOVER_GROUP_UNREPLICATED_RECORDS.name)),
            unreplicated_seconds=lags.get((flow, group, FAILOVER_GROUP_UNREPLICATED_SECONDS.name)),
            source_lag=sides.get((flow, group, flow.source), LagView()),
            target_lag=sides.get((flow, group, flow.target), LagView()),
        )
        for (flow, group), verdict in sorted(ready.items())
    )


def _group_lags(
    unread: Mapping[tuple[Flow, str, str, str, str], float],
) -> dict[tuple[Flow, str, str], LagView]:
    """Lag of groups by cluster, over topics; its age is unknown if that of a topic is."""
    found: dict[tuple[Flow, str, str], LagView] = {}
    for (flow, group, cluster, topic, measure), records in unread.items():
        if measure != GROUP_LAG_RECORDS.name:
            continue
        age = unread.get((flow, group, cluster, topic, GROUP_LAG_SECONDS.name))
        before = found.get((flow, group, cluster), LagView(0.0, 0.0))
        oldest = None if age is None or before.seconds is None else max(before.seconds, age)
        found[flow, group, cluster] = LagView((before.records or 0.0) + records, oldest)
    return found


def _flow(sample: Sample) -> Flow | None:
    source, target = sample.labels.get("source"), sample.labels.get("target")
    return Flow(source, target) if source and target else None


THROUGHPUT_COUNTERS: Final = (SOURCE_RECORDS_TOTAL.name, REPLICATED_RECORDS_TOTAL.name)

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
