"""Figures of the demo, from the exporter's reports (pure).

Throughput and latency of a flow are those of its recent counters and histograms.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mm2slo_core.catalogue.metric import LATENCY_BUCKETS
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.replication_lag import Headroom
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import Flow
from mm2slo_exporter.state.flow_report import FlowReport, GroupState, LatencyHistogram, TopicState

ALIVE = frozenset({FlowStateName.RUNNING, FlowStateName.IDLE})
GROUPS_EXPECTED = 2


@dataclass(frozen=True, slots=True)
class RecentThroughput:
    """Records per second, produced to the source and replicated to the target."""

    source: float
    target: float


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Percentiles in seconds; None if above the last bucket bound."""

    p50: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """Throughput over ten seconds and latencies over a minute; None if unknown."""

    throughput: RecentThroughput | None = None
    canary: LatencyPercentiles | None = None
    heartbeat: LatencyPercentiles | None = None


NO_ACTIVITY = RecentActivity()
_UNREAD = "the first collection"


@dataclass(frozen=True, slots=True)
class DemoTopicFigures:
    """Sums over a topic's partitions; None while one of them is unknown.

    `replicated` is the sum of the positions.
    """

    source_end: int | None
    target_end: int | None
    replicated: int | None
    lag_records: int | None


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Failover readiness of a consumer group; `blocked` has the reasons."""

    ready: bool
    redelivery_lower: int | None
    redelivery_upper: int | None
    blocked: tuple[str, ...]
    unreplicated_records: int | None = None
    unreplicated_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DemoFlowFigures:
    """Figures of one flow; None if unknown. Times in seconds."""

    flow: Flow
    state: FlowStateName
    reason: str
    waiting_for: tuple[str, ...] = ()
    lag_records: int | None = None
    lag_seconds: float | None = None
    recent: RecentActivity = NO_ACTIVITY
    canary_age: float | None = None
    heartbeat_age: float | None = None
    heartbeats_disabled: bool = False
    partitions: int = 0
    stalled: tuple[str, ...] = ()
    headroom: Headroom | None = None
    topics: Mapping[str, DemoTopicFigures] = field(default_factory=dict)
    groups: Mapping[str, GroupFigures] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether the flow is running or idle."""
        return self.state in ALIVE

    @property
    def groups_ready(self) -> int:
        """Number of groups that are ready to fail over."""
        return sum(group.ready for group in self.groups.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """What the figures lack to be complete."""
        canary = self.recent.canary
        known = sum(group.redelivery_upper is not None for group in self.groups.values())
        checks = {
            f"flow is {self.state} ({_spaced(self.reason)})": not self.is_alive,
            "no lag in records": self.lag_records is None,
            "no lag in seconds": self.lag_seconds is None,
            "no canary latency": canary is None or None in (canary.p50, canary.p99),
            f"readiness known for {known} groups, expected {GROUPS_EXPECTED}": known
            < GROUPS_EXPECTED,
        }
        return tuple(what for what, is_missing in checks.items() if is_missing)

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types."""
        return {
            "flow": self.flow.label,
            "state": self.state.value,
            "reason": self.reason,
            "lag_records": self.lag_records,
            "lag_seconds": self.lag_seconds,
            "canary_latency_seconds": _plain(self.recent.canary),
            "heartbeat_latency_seconds": _plain(self.recent.heartbeat),
            "records_per_second": _plain(self.recent.throughput),
            "stalled_partitions": list(self.stalled),
            "retention_headroom": None if self.headroom is None else self.headroom._asdict(),
            "topics": {name: asdict(topic) for name, topic in self.topics.items()},
            "groups": {name: asdict(group) for name, group in self.groups.items()},
        }


@dataclass(frozen=True, slots=True)
class DemoFigures:
    """Figures of all flows, and URLs."""

    flows: tuple[DemoFlowFigures, ...]
    urls: Mapping[str, str]
    bootstrap_servers: Mapping[str, str]

    @property
    def missing(self) -> tuple[str, ...]:
        """What the figures of each flow lack."""
        return tuple(f"{flow.flow.label}: {what}" for flow in self.flows for what in flow.missing)

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types."""
        return {
            "flows": [flow.to_json() for flow in self.flows],
            "urls": dict(self.urls),
            "bootstrap_servers": dict(self.bootstrap_servers),
        }


def flow_figures(
    flow: Flow, report: FlowReport | None, recent: RecentActivity = NO_ACTIVITY
) -> DemoFlowFigures:
    """Return the figures of *flow*; most are unknown before its first *report*."""
    if report is None:
        return DemoFlowFigures(flow, FlowStateName.UNKNOWN, "not_ready", (_UNREAD,))
    topics = [topic for topic in report.topics if topic.pair.role is TopicRole.DATA]
    partitions = [partition for topic in topics for partition in topic.partitions]
    return DemoFlowFigures(
        flow=flow,
        state=report.state,
        reason=str(report.state_reason),
        waiting_for=report.waiting_for,
        # Without partitions, lag is unknown, not 0.
        lag_records=report.lag_records if partitions else None,
        lag_seconds=report.lag_seconds if partitions else None,
        recent=recent,
        canary_age=(
            None if report.canary_arrived_at is None else report.at - report.canary_arrived_at
        ),
        heartbeat_age=report.heartbeats.age_seconds,
        heartbeats_disabled=report.info.heartbeats_disabled and not report.heartbeats.present,
        partitions=len(partitions),
        stalled=tuple(f"{place.topic}-{place.partition}" for place in report.stalled),
        headroom=_smallest_headroom(partition.headroom for partition in partitions),
        topics={topic.pair.source: _topic(topic) for topic in topics},
        groups={group.group: _group(group) for group in report.groups},
    )


def _topic(topic: TopicState) -> DemoTopicFigures:
    return DemoTopicFigures(
        source_end=_sum(partition.source_end for partition in topic.partitions),
        target_end=_sum(partition.target_end for partition in topic.partitions),
        replicated=_sum(partition.next_offset for partition in topic.partitions),
        lag_records=_sum(partition.lag_records for partition in topic.partitions),
    )


def _group(group: GroupState) -> GroupFigures:
    readiness = group.readiness
    return GroupFigures(
        ready=readiness.ready,
        redelivery_lower=readiness.redelivery_lower,
        redelivery_upper=readiness.redelivery_upper,
        blocked=tuple(blocked.reason.value for blocked in readiness.blocked),
        unreplicated_records=group.unreplicated.records,
        unreplicated_seconds=group.unreplicated.seconds,
    )


def _smallest_headroom(headrooms: Iterable[Headroom | None]) -> Headroom | None:
    """The smallest headroom in seconds; one without seconds only if none has them."""
    known = [room for room in headrooms if room is not None]
    timed = [(room.seconds, room) for room in known if room.seconds is not None]
    if timed:
        return min(timed, key=lambda entry: entry[0])[1]
    return known[0] if known else None


def _sum(figures: Iterable[int | None]) -> int | None:
    """The sum; None if a figure is unknown or *figures* is empty."""
    found = list(figures)
    known = [figure for figure in found if figure is not None]
    return sum(known) if found and len(known) == len(found) else None


def _plain(figure: LatencyPercentiles | RecentThroughput | None) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)


def _spaced(label: str) -> str:
    return label.replace("_", " ")


_RATE_WINDOW = 10.0
_LATENCY_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    source: int
    target: int
    canary: tuple[int, ...]
    heartbeat: tuple[int, ...]


class ActivityMeter:
    """Keeps the counters of a flow for a minute."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def read(self, report: FlowReport) -> RecentActivity:
        """Add a report and return the activity up to it; a report may be added repeatedly."""
        now = _sample(report)
        if not self._samples or now.at > self._samples[-1].at:
            self._samples.append(now)
        # The newest sample before the window is its start: counters are cumulative, and a report of
        # the exporter rarely falls on the edge.
        while len(self._samples) > 1 and self._samples[1].at <= now.at - _LATENCY_WINDOW:
            self._samples.popleft()
        minute = self._samples[0]
        is_short = minute.at > now.at - _LATENCY_WINDOW  # less than a minute of data: use all of it
        return RecentActivity(
            self._throughput(now),
            latency_percentiles(now.canary if is_short else _less(now.canary, minute.canary)),
            latency_percentiles(
                now.heartbeat if is_short else _less(now.heartbeat, minute.heartbeat)
            ),
        )

    def _throughput(self, now: _Sample) -> RecentThroughput | None:
        start = None
        for sample in self._samples:
            if start is None or sample.at <= now.at - _RATE_WINDOW:
                start = sample
        if start is None or start.at >= now.at:
            return None
        seconds = now.at - start.at
        return RecentThroughput(
            (now.source - start.source) / seconds, (now.target - start.target) / seconds
        )


def _sample(report: FlowReport) -> _Sample:
    return _Sample(
        at=report.at,
        source=report.totals.source_records_total,
        target=report.totals.replicated_records_total,
        canary=_counts(report.canary_latency),
        heartbeat=_counts(report.heartbeat_latency),
    )


def _counts(histogram: LatencyHistogram | None) -> tuple[int, ...]:
    return () if histogram is None else histogram.counts


def _less(now: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """The difference per bucket; a histogram that did not exist before started at 0."""
    return tuple(a - b for a, b in zip(now, before, strict=True)) if before else now


def latency_percentiles(counts: tuple[int, ...]) -> LatencyPercentiles | None:
    """Return the percentiles of *counts* per bucket; None without observations."""
    return (
        LatencyPercentiles(quantile(0.5, counts), quantile(0.99, counts)) if sum(counts) else None
    )


def quantile(share: float, counts: tuple[int, ...]) -> float | None:
    """Return a quantile as PromQL's `histogram_quantile`: linear within the bucket of the rank.

    *counts* are per bucket, with at least one observation. Above the last bound the result is None,
    where PromQL returns that bound.
    """
    rank = share * sum(counts)
    below, lower = 0, 0.0
    for upper, count in zip(LATENCY_BUCKETS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (upper - lower) * (rank - below) / count
        below, lower = below + count, upper
    return None
