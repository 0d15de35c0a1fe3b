"""The report of a flow: everything the exporter publishes about it; immutable.

None means that a value is currently unknown; its series is then not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from mm2slo_core.config.exporter_settings import Engine
from mm2slo_core.indicators.canary_rules import CanaryTotals
from mm2slo_core.indicators.flow_state import FlowStateName, PartitionProgress, StateReason
from mm2slo_core.indicators.group_readiness import GroupReadiness
from mm2slo_core.indicators.replication_lag import Headroom, LagOrigin
from mm2slo_core.indicators.sli_counters import SliCount, SliKey
from mm2slo_core.mm2_config.running_settings import SettingDifference
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.state_record import GroupVerdict, RecoveryPoint
from mm2slo_core.topic_selection import TopicPair
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.state.group_lag import UNKNOWN_LAG, GroupLag, LagSum


class PartitionState(NamedTuple):
    """One source partition. Offsets are those of the source unless the name contains target."""

    partition: int
    source_start: int | None
    source_end: int | None
    target_start: int | None = None
    target_end: int | None = None
    next_offset: int | None = None
    quality: PositionQuality | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    lag_origin: LagOrigin = LagOrigin.ABSENT
    progress: PartitionProgress = PartitionProgress.UNKNOWN
    progressed_at: float | None = None
    """When the position last advanced; None for an idle partition, which is up to date."""
    headroom: Headroom | None = None
    sync_upstream: int | None = None
    sync_at: float | None = None
    open_transaction_records: int | None = None
    backlog_since: float | None = None
    """Since when unreplicated records exist and the position has not advanced; None while it is
    undecided whether a transform has dropped them."""
    log: int = 0
    """How often the source's log was replaced: truncated or re-created."""


class TopicState(NamedTuple):
    """One replicated topic, its partitions, and its drift between the clusters."""

    pair: TopicPair
    partitions: tuple[PartitionState, ...]
    source_partition_count: int | None
    target_partition_count: int | None = None
    missing_on_target: bool = False
    config_drift: tuple[str, ...] = ()
    assigned_missing: int | None = None
    unassigned: int | None = None
    source_records_total: int = 0
    replicated_records_total: int = 0
    lost_records_total: int = 0
    """Those with an acknowledged state record."""
    pending_lost_records: int = 0
    truncations_total: int = 0
    source_recreations_total: int = 0
    target_recreations_total: int = 0
    target_moved_at: float | None = None
    """When the copy last grew; only for engines without positions."""
    backlog_since: float | None = None
    """Since when the topic has grown without its copy; only for engines without positions."""
    at_rest: bool = False
    """No partition has a backlog, and the state holds until something else is read."""


@dataclass(frozen=True, slots=True)
class FlowTotals:
    """Counters of a flow's data topics, including those of topics that were deleted."""

    source_records_total: int = 0
    replicated_records_total: int = 0
    lost_records_total: int = 0
    truncations_total: int = 0
    source_recreations_total: int = 0
    target_recreations_total: int = 0


@dataclass(frozen=True, slots=True)
class TaskState:
    """State of a connector (`task` None) or of one of its tasks, from the status topic."""

    connector: str
    task: int | None
    state: str


@dataclass(frozen=True, slots=True)
class HeartbeatState:
    """MirrorMaker 2's heartbeats on the target; disabled ones are not present and have no age."""

    present: bool
    newest_at: float | None = None
    """When the newest one was sent, by the clock of MirrorMaker 2."""
    arrived_at: float | None = None
    """When one last arrived, by the exporter's clock."""
    age_seconds: float | None = None
    """Since then."""
    received_total: int = 0
    missing_total: int = 0


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """Observations per bucket (not cumulative; last above all bounds), and their sum in seconds."""

    counts: tuple[int, ...]
    total_seconds: float


@dataclass(frozen=True, slots=True)
class GroupState:
    """Failover readiness of one consumer group of the source."""

    group: str
    readiness: GroupReadiness
    checkpoint_at: float | None
    checkpoint_lag_by_topic: Mapping[str, int]
    commits_at: float | None = None
    """When the group's committed offsets on the source were last read."""
    unreplicated: LagSum = UNKNOWN_LAG
    """Of the partitions on which the group commits, when the source was last read."""

    @property
    def verdict(self) -> GroupVerdict:
        """What its state record contains."""
        return GroupVerdict(
            replace(self.readiness, partitions=()),
            self.checkpoint_at,
            self.commits_at,
            self.unreplicated,
        )

    @classmethod
    def restored(cls, group: str, saved: GroupVerdict) -> Self:
        """The state of an earlier process."""
        return cls(
            group,
            saved.readiness,
            saved.checkpoint_at,
            {},
            saved.commits_at,
            LagSum(*saved.unreplicated),
        )


class UnjudgedGroups(NamedTuple):
    """Groups of the source that have no verdict, by name."""

    excluded: tuple[str, ...] = ()
    """By the flow's filter."""
    without_commits: tuple[str, ...] = ()
    """On a replicated partition."""
    all_types: bool = False
    """Whether Streams and share groups were listed, too: without it some may be missing."""


NO_UNJUDGED_GROUPS: Final = UnjudgedGroups()


@dataclass(frozen=True, slots=True)
class FlowInfo:
    """The configuration of a flow, as label values."""

    policy: str
    separator: str
    engine: str
    canary: str
    """The carrier of its canaries: `heartbeats`, `topic`, or `off`."""
    heartbeats_disabled: bool = False
    """Whether MirrorMaker 2 is set not to emit heartbeats for this flow."""


@dataclass(frozen=True, slots=True)
class TimelineState:
    """Records that this exporter wrote to the flow's watermark timeline."""

    writer: bool
    records_total: int = 0
    bytes_total: int = 0


@dataclass(frozen=True, slots=True)
class FlowReport:
    """Everything published about one flow."""

    flow: Flow
    info: FlowInfo
    at: float
    state: FlowStateName
    state_reason: str
    ready: bool
    waiting_for: tuple[str, ...]
    source_readable: bool
    target_readable: bool
    topics: tuple[TopicState, ...] = ()
    totals: FlowTotals = field(default_factory=FlowTotals)
    groups: tuple[GroupState, ...] = ()
    unjudged_groups: UnjudgedGroups = NO_UNJUDGED_GROUPS
    group_lags: tuple[GroupLag, ...] = ()
    """Of both clusters; ordered by cluster and name."""
    tasks: tuple[TaskState, ...] = ()
    heartbeats: HeartbeatState = field(default_factory=lambda: HeartbeatState(present=False))
    heartbeat_latency: LatencyHistogram | None = None
    canary: CanaryTotals | None = None
    canary_pending: int | None = None
    canary_latency: LatencyHistogram | None = None
    canary_arrived_at: float | None = None
    slis: Mapping[SliKey, SliCount] = field(default_factory=dict)
    overridden: tuple[SettingDifference, ...] = ()
    """Settings with which MirrorMaker 2 runs and which the configuration has differently."""
    shared_cluster: str | None = None
    """The id of the cluster that is both source and target, under two aliases."""
    lag_records: int | None = None
    lag_seconds: float | None = None
    recovery_point: RecoveryPoint | None = None
    """None until the source was read."""
    catch_up_seconds: float | None = None
    stalled: tuple[TopicPartition, ...] = ()
    timeline: TimelineState | None = None
    history_since: float | None = None
    """From when on arrivals are known; None without a timeline."""
    arrival_bracket: float | None = None
    """Width of the brackets of arrivals on the target in seconds; None if others write them."""
    skipped_rounds: int = 0
    hidden_groups: frozenset[str] = frozenset()
    """Those of `groups` and `group_lags` without series of their own."""

    @property
    def by_mirrormaker(self) -> bool:
        """Whether the flow's engine is MirrorMaker 2."""
        return self.info.engine == Engine.MIRRORMAKER2

    def not_evaluated(self) -> FlowReport:
        """This report without all that may have changed since: the flow's state is unknown."""
        return FlowReport(
            flow=self.flow,
            info=self.info,
            at=self.at,
            state=FlowStateName.UNKNOWN,
            state_reason=StateReason.NOT_EVALUATED,
            ready=False,
            waiting_for=("an evaluation",),
            source_readable=False,
            target_readable=False,
            slis=self.slis,
            timeline=self.timeline,
            history_since=self.history_since,
        )
