"""Figures of the demo, from the exporter's reports (pure)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mm2slo_cli.demo.recent_activity import RecentActivity
from mm2slo_core.flow_state import FlowStateName
from mm2slo_core.topic_selection import TopicRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_cli.demo.latency_percentiles import LatencyPercentiles
    from mm2slo_cli.demo.recent_activity import Throughput
    from mm2slo_core.retention_headroom import Headroom
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.state.flow_report import FlowReport, GroupState, TopicState

ALIVE = frozenset({FlowStateName.RUNNING, FlowStateName.IDLE})
GROUPS_EXPECTED = 2
NO_ACTIVITY = RecentActivity()
_UNREAD = "the first collection"


@dataclass(frozen=True, slots=True)
class TopicFigures:
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
class FlowFigures:
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
    topics: Mapping[str, TopicFigures] = field(default_factory=dict)
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

    flows: tuple[FlowFigures, ...]
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
) -> FlowFigures:
    """Return the figures of *flow*; most are unknown before its first *report*."""
    if report is None:
        return FlowFigures(flow, FlowStateName.UNKNOWN, "not_ready", (_UNREAD,))
    topics = [topic for topic in report.topics if topic.pair.role is TopicRole.DATA]
    partitions = [partition for topic in topics for partition in topic.partitions]
    return FlowFigures(
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


def _topic(topic: TopicState) -> TopicFigures:
    return TopicFigures(
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


def _plain(figure: LatencyPercentiles | Throughput | None) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)


def _spaced(label: str) -> str:
    return label.replace("_", " ")
