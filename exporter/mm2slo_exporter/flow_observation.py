"""What was read of a flow in one round, and what the state topic holds of it; immutable.

Order within a round: internal topics, target end offsets, source end offsets. A source end
offset is thus never older than the position it is compared with, so lag is never negative. An end
and a start of a partition are of the same log, unless its end did not fall when it was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from mm2slo_core.indicators.flow_state import TaskCommits
from mm2slo_core.indicators.group_readiness import NewestCheckpoint, OffsetMap
from mm2slo_core.mm2_config.running_settings import RunningConnectors
from mm2slo_core.state_record import GroupVerdict, RecoveryPoint, State, StateKey, TopicLosses
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import CanaryEvent
from mm2slo_exporter.flow_plan import FlowPlan

INACTIVE_GROUP_STATES: Final = frozenset({"empty", "dead"})
"""MirrorMaker 2 writes commits only of such groups on the target (MirrorCheckpointTask): a group
with members would be reset while it reads. The client reports newer states as unknown."""
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def empty_mapping() -> Mapping[_Key, _Value]:
    """An immutable empty mapping."""
    return MappingProxyType({})


class NewestSync(NamedTuple):
    """The newest offset sync of a source partition, and when it was sent."""

    upstream: int
    downstream: int
    at: float


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """End and start offsets of one side, with the times of this and the preceding success."""

    ends: Mapping[TopicPartition, int] = field(default_factory=empty_mapping)
    starts: Mapping[TopicPartition, int] = field(default_factory=empty_mapping)
    stable_ends: Mapping[TopicPartition, int] = field(default_factory=empty_mapping)
    """Last stable offsets; only for flows whose MirrorMaker 2 reads committed."""
    requested_at: float = 0.0
    answered_at: float = 0.0
    previous_requested_at: float | None = None
    previous_answered_at: float | None = None
    starts_read_at: float = 0.0
    """When all `starts` were last read. Those of replaced logs are read again with their ends."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Metadata of a cluster: topics, their ids and settings, consumer groups."""

    topics: Mapping[str, int] = field(default_factory=empty_mapping)
    hidden: frozenset[str] = frozenset()
    """Those of `topics` for which authorization was revoked; their current state is unknown."""
    topic_ids: Mapping[str, str] = field(default_factory=empty_mapping)
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=empty_mapping)
    """Settings of the topic itself, by name, without defaults."""
    retention_configs: Mapping[str, Mapping[str, str]] = field(default_factory=empty_mapping)
    """Effective settings that decide what Kafka removes, by name."""
    group_offsets: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=empty_mapping)
    groups_read_at: Mapping[str, float] = field(default_factory=empty_mapping)
    """When the `group_offsets` were requested, by group; later commits may be missing."""
    unreadable_groups: frozenset[str] = frozenset()
    """Groups of which the newest read failed; their offsets are those of an earlier one, if any."""
    groups_complete: bool = False
    """Whether all groups were read once; those of a distant cluster take several reads."""
    group_states: Mapping[str, str] = field(default_factory=empty_mapping)
    """Kafka's states in lower case, such as stable and empty, or unknown; of all groups."""
    group_members: Mapping[str, int] = field(default_factory=empty_mapping)
    uncarried_groups: frozenset[str] = frozenset()
    """Groups that MirrorMaker 2 does not list: Streams groups, those without `group_offsets` maybe
    share groups."""
    knows_uncarried_groups: bool = False
    """Whether groups of all types were listed; without it some may be missing."""
    groups_listed_at: float | None = None
    """When all brokers last listed their groups."""
    topics_read_at: float | None = None
    cluster_id: str | None = None

    def is_active(self, group: str) -> bool:
        """Whether *group* may have members; also if its state is not known to the client."""
        return self.group_states.get(group, "dead") not in INACTIVE_GROUP_STATES


@dataclass(frozen=True, slots=True)
class SavedState:
    """The newest record of each key of one flow."""

    records: Mapping[StateKey, State] = field(default_factory=dict)
    losses: Mapping[str, TopicLosses] = field(default_factory=dict)
    """By source topic."""
    verdicts: Mapping[str, GroupVerdict] = field(default_factory=dict)
    recovery_point: RecoveryPoint | None = None

    @classmethod
    def of(cls, records: Mapping[StateKey, State]) -> SavedState:
        losses: dict[str, TopicLosses] = {}
        verdicts: dict[str, GroupVerdict] = {}
        recovery_point = None
        for key, state in records.items():
            match state:
                case TopicLosses():
                    topic = key.name.partition("/")[0]
                    others = losses[topic].partitions if topic in losses else {}
                    losses[topic] = state._replace(partitions={**others, **state.partitions})
                case GroupVerdict():
                    verdicts[key.name] = state
                case RecoveryPoint():
                    recovery_point = state
        return cls(dict(records), losses, verdicts, recovery_point)


@dataclass(frozen=True, slots=True)
class InternalsView:
    """State from MirrorMaker 2's internal topics, complete up to the time of the view."""

    syncs: Mapping[TopicPartition, NewestSync] = field(default_factory=empty_mapping)
    offset_map: Callable[[TopicPartition], OffsetMap | None] = field(
        default=lambda _partition: None, repr=False
    )
    """Translates offsets of a source partition; None without any offset sync."""
    committed: Mapping[TopicPartition, int] = field(default_factory=empty_mapping)
    """Last source offset that MirrorMaker 2 committed, by source partition."""
    checkpoints: Mapping[str, Mapping[TopicPartition, NewestCheckpoint]] = field(
        default_factory=empty_mapping
    )
    """Newest checkpoint by group and target partition."""
    states: Mapping[tuple[str, int | None], str] = field(default_factory=empty_mapping)
    assigned: frozenset[TopicPartition] | None = None
    assignments: Mapping[int, tuple[TopicPartition, ...]] | None = None
    """Source partitions by task; None while they are unknown."""
    task_commits: Callable[[TopicPartition], TaskCommits | None] = field(
        default=lambda _partition: None, repr=False
    )
    """Commits of the task that a source partition is assigned to; None if no task is known."""
    connectors: RunningConnectors = field(default_factory=RunningConnectors)
    translation_restarted_at: float | None = None
    """When MirrorMaker 2 before Kafka 3.7.1 restarted and forgot earlier offset syncs."""
    saved: SavedState = field(default_factory=SavedState)
    """State that this or an earlier exporter has saved."""
    waiting_for: tuple[str, ...] = ()
    """Existing topics that have not been read to their end."""


@dataclass(frozen=True, slots=True)
class TailProbe:
    """The first record in [next_offset, through), if any.

    Transaction markers, aborted batches and compacted records take up offsets too.
    """

    next_offset: int
    through: int
    first_offset: int | None
    first_timestamp: float | None
    log: int = 0
    """How often the exporter had seen the log replaced when the probe was requested."""


class ProbeSpan(NamedTuple):
    """A range of offsets to probe."""

    start: int
    end: int
    log: int = 0
    """How often the exporter has seen the log truncated or re-created: offsets then mean other
    records."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read of one flow in one round."""

    at: float
    plan: FlowPlan
    source: ClusterView
    target: ClusterView
    internals: InternalsView
    source_offsets: OffsetsRead | None
    """None until the source has answered once; the last answer while it is unreachable."""
    target_offsets: OffsetsRead | None
    source_readable: bool
    target_readable: bool
    probes: Mapping[TopicPartition, TailProbe] = field(default_factory=empty_mapping)
    canary_events: tuple[CanaryEvent, ...] = ()

    @property
    def lost_records(self) -> int:
        """The saved losses of all data topics, deleted ones included."""
        carriers = {TopicRole.HEARTBEATS, TopicRole.CANARY}
        others = {pair.source for pair in self.plan.pairs if pair.role in carriers}
        losses = self.internals.saved.losses.items()
        saved = (of_topic.partitions.values() for topic, of_topic in losses if topic not in others)
        return sum(loss.total for of_partitions in saved for loss in of_partitions)

    @property
    def unread(self) -> tuple[str, ...]:
        """What has not been read yet."""
        missing = []
        if self.source_offsets is None or self.source.topics_read_at is None:
            missing.append("source offsets")
        if self.target_offsets is None or self.target.topics_read_at is None:
            missing.append("target offsets")
        return (*missing, *self.internals.waiting_for)

    def in_place_of(self, skipped: Observation) -> Observation:
        """This round with the events of *skipped*, the round before, which is not evaluated.

        The polls that precede its offsets are those that precede the offsets of *skipped*.
        """
        return replace(
            self,
            canary_events=(*skipped.canary_events, *self.canary_events),
            source_offsets=_in_place_of(skipped.source_offsets, self.source_offsets),
            target_offsets=_in_place_of(skipped.target_offsets, self.target_offsets),
        )


def _in_place_of(skipped: OffsetsRead | None, read: OffsetsRead | None) -> OffsetsRead | None:
    if skipped is None or read is None:
        return read
    if skipped.answered_at == read.answered_at:
        return skipped
    return replace(
        read,
        previous_requested_at=skipped.previous_requested_at,
        previous_answered_at=skipped.previous_answered_at,
    )
