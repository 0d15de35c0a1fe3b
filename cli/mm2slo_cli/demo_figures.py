"""Figures of the demo, from the exporter's reports (pure).

Throughput and latency of a flow are those of its recent counters and histograms.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import sub
from typing import Any, Final, NamedTuple

from mm2slo_core.catalogue.metric import LATENCY_BUCKETS
from mm2slo_core.indicators.flow_state import FlowStateName, StateReason
from mm2slo_core.indicators.replication_lag import Headroom
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import Flow
from mm2slo_exporter.state.flow_report import (
    FlowInfo,
    FlowReport,
    GroupState,
    LatencyHistogram,
    PartitionState,
    TopicState,
)
from mm2slo_exporter.state.group_lag import UNKNOWN_LAG, LagSum

GROUPS_EXPECTED: Final = 2


class RecentThroughput(NamedTuple):
    """Records per second, produced to the source and replicated to the target."""

    source: float
    target: float


class LatencyPercentiles(NamedTuple):
    """Percentiles in seconds; None if above the last bucket bound."""

    p50: float | None
    p99: float | None


class RecentActivity(NamedTuple):
    """Throughput over ten seconds and latencies over a minute; None if unknown."""

    throughput: RecentThroughput | None = None
    canary: LatencyPercentiles | None = None
    heartbeat: LatencyPercentiles | None = None


NO_ACTIVITY: Final = RecentActivity()


@dataclass(frozen=True, slots=True)
class FlowFigures:
    """A flow's newest report and its activity up to that."""

    report: FlowReport
    recent: RecentActivity = NO_ACTIVITY

    @property
    def is_alive(self) -> bool:
        """Whether the flow is running or idle."""
        return self.report.state in (FlowStateName.RUNNING, FlowStateName.IDLE)

    @property
    def topics(self) -> list[TopicState]:
        """The replicated topics without MirrorMaker 2's own."""
        return [topic for topic in self.report.topics if topic.pair.role is TopicRole.DATA]

    @property
    def partitions(self) -> list[PartitionState]:
        return [partition for topic in self.topics for partition in topic.partitions]

    @property
    def lag(self) -> LagSum:
        """Without partitions it is unknown, not 0."""
        known = LagSum(self.report.lag_records, self.report.lag_seconds)
        return known if self.partitions else UNKNOWN_LAG

    @property
    def headroom(self) -> Headroom | None:
        """The smallest one in seconds; one without seconds only if none has them."""
        return min(
            (each.headroom for each in self.partitions if each.headroom is not None),
            key=lambda room: math.inf if room.seconds is None else room.seconds,
            default=None,
        )

    @property
    def groups_ready(self) -> int:
        """Number of groups that are ready to fail over."""
        return sum(group.readiness.ready for group in self.report.groups)

    @property
    def missing(self) -> list[str]:
        """What the figures lack to be complete."""
        report, canary = self.report, self.recent.canary
        known = sum(each.readiness.redelivery_upper is not None for each in report.groups)
        checks = {
            f"flow is {report.state} ({spaced(report.state_reason)})": not self.is_alive,
            "no lag in records": self.lag.records is None,
            "no lag in seconds": self.lag.seconds is None,
            "no canary latency": canary is None or None in canary,
            f"readiness known for {known} groups, expected {GROUPS_EXPECTED}": known
            < GROUPS_EXPECTED,
        }
        return [what for what, is_missing in checks.items() if is_missing]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types."""
        report, recent, headroom = self.report, self.recent, self.headroom
        return {
            "flow": report.flow.label,
            "state": report.state.value,
            "reason": str(report.state_reason),
            "lag_records": self.lag.records,
            "lag_seconds": self.lag.seconds,
            "canary_latency_seconds": recent.canary and recent.canary._asdict(),
            "heartbeat_latency_seconds": recent.heartbeat and recent.heartbeat._asdict(),
            "records_per_second": recent.throughput and recent.throughput._asdict(),
            "stalled_partitions": [f"{place.topic}-{place.partition}" for place in report.stalled],
            "retention_headroom": headroom and headroom._asdict(),
            "topics": {topic.pair.source: topic_sums(topic) for topic in self.topics},
            "groups": {group.group: _group_figures(group) for group in report.groups},
        }


@dataclass(frozen=True, slots=True)
class DemoFigures:
    """Figures of all flows, and URLs."""

    flows: tuple[FlowFigures, ...]
    urls: Mapping[str, str]
    bootstrap_servers: Mapping[str, str]

    @property
    def missing(self) -> tuple[str, ...]:
        """What the figures of each flow lack."""
        return tuple(
            f"{each.report.flow.label}: {what}" for each in self.flows for what in each.missing
        )

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types."""
        return {
            "flows": [flow.to_json() for flow in self.flows],
            "urls": dict(self.urls),
            "bootstrap_servers": dict(self.bootstrap_servers),
        }


def unread_report(flow: Flow) -> FlowReport:
    """The report of *flow* before the exporter's first one."""
    return FlowReport(
        flow=flow,
        info=FlowInfo(policy="", separator="", engine="", canary=""),
        at=0.0,
        state=FlowStateName.UNKNOWN,
        state_reason=StateReason.NOT_READY,
        ready=False,
        waiting_for=("the first collection",),
        source_readable=False,
        target_readable=False,
    )


def topic_sums(topic: TopicState) -> dict[str, int | None]:
    """Sums over the partitions of *topic*, None while one is unknown; `replicated`: positions."""
    partitions = topic.partitions
    return {
        "source_end": _sum(partition.source_end for partition in partitions),
        "target_end": _sum(partition.target_end for partition in partitions),
        "replicated": _sum(partition.next_offset for partition in partitions),
        "lag_records": _sum(partition.lag_records for partition in partitions),
    }


def _group_figures(group: GroupState) -> dict[str, Any]:
    readiness = group.readiness
    return {
        "ready": readiness.ready,
        "redelivery_lower": readiness.redelivery_lower,
        "redelivery_upper": readiness.redelivery_upper,
        "blocked": [blocked.reason.value for blocked in readiness.blocked],
        "unreplicated_records": group.unreplicated.records,
        "unreplicated_seconds": group.unreplicated.seconds,
    }


def _sum(figures: Iterable[int | None]) -> int | None:
    """The sum; None if a figure is unknown or *figures* is empty."""
    values = list(figures)
    return None if not values or None in values else sum(filter(None, values))


def spaced(label: str) -> str:
    """Return a label value with spaces."""
    return label.replace("_", " ")


_RATE_WINDOW: Final = 10.0
_LATENCY_WINDOW: Final = 60.0


class ActivityMeter:
    """Keeps the reports of a flow for a minute."""

    def __init__(self) -> None:
        self._reports: deque[FlowReport] = deque()

    def read(self, report: FlowReport) -> RecentActivity:
        """Add a report and return the activity up to it; a report may be added repeatedly."""
        if not self._reports or report.at > self._reports[-1].at:
            self._reports.append(report)
        # The newest report before the window is its start: counters are cumulative, and a report
        # rarely falls on the edge.
        start = report.at - _LATENCY_WINDOW
        while len(self._reports) > 1 and self._reports[1].at <= start:
            self._reports.popleft()
        first = self._reports[0]
        has_minute = first.at <= start  # otherwise all data counts
        return RecentActivity(
            self._throughput(report),
            _latency(report.canary_latency, first.canary_latency if has_minute else None),
            _latency(report.heartbeat_latency, first.heartbeat_latency if has_minute else None),
        )

    def _throughput(self, now: FlowReport) -> RecentThroughput | None:
        earlier = (each for each in reversed(self._reports) if each.at <= now.at - _RATE_WINDOW)
        start = next(earlier, self._reports[0])
        if start.at >= now.at:
            return None
        seconds, before, after = now.at - start.at, start.totals, now.totals
        return RecentThroughput(
            (after.source_records_total - before.source_records_total) / seconds,
            (after.replicated_records_total - before.replicated_records_total) / seconds,
        )


def _latency(
    now: LatencyHistogram | None, before: LatencyHistogram | None
) -> LatencyPercentiles | None:
    """Percentiles of the observations since *before*; without it, of all."""
    if now is None:
        return None
    counts = now.counts if before is None else tuple(map(sub, now.counts, before.counts))
    return latency_percentiles(counts)


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
    # Observations count as evenly spread within a bucket, as in Prometheus (promql/quantile.go).
    rank = share * sum(counts)
    below, lower = 0, 0.0
    for upper, count in zip(LATENCY_BUCKETS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (upper - lower) * (rank - below) / count
        below, lower = below + count, upper
    return None
