"""Whether a consumer group would resume correctly on the target, and how much it reads again.

Judged is the newest checkpoint on the target: what a failover would really use, by
`RemoteClusterUtils.translateOffsets` or synced group offsets. Never our own translation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mm2slo_core.offset_sync_store import Untranslated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.flow_offsets import Bounds, Head
    from mm2slo_core.topology import TopicPartition


class BlockReason(StrEnum):
    """Why a group would not resume correctly; the value is the label `reason`."""

    NO_CHECKPOINT = "no_checkpoint"
    NO_OFFSET_SYNC = "no_offset_sync"
    """No checkpoint, because MM2 has written no offset sync for the partition."""
    BEHIND_OLDEST_SYNC = "behind_oldest_sync"
    """No checkpoint, because the group is behind every offset sync that MM2 keeps."""
    CHECKPOINT_STALE = "checkpoint_stale"
    """More commits than allowed are not in a checkpoint yet."""
    CHECKPOINT_EXPIRED = "checkpoint_expired"
    """The target no longer holds the record: the consumer would be reset."""
    CHECKPOINT_AHEAD = "checkpoint_ahead"
    """Beyond the target's end: the consumer would be reset."""
    WOULD_SKIP_RECORDS = "would_skip_records"
    """Beyond the group's own place: records would never be read (the group was rewound, or a
    version of MM2 before 3.5 translated too far)."""
    REDELIVERY_OVER_BUDGET = "redelivery_over_budget"
    TARGET_TOPIC_MISSING = "target_topic_missing"
    TARGET_PARTITIONS_MISSING = "target_partitions_missing"
    TARGET_OFFSET_BEHIND = "target_offset_behind"
    """MM2 is to sync group offsets, and the group's offset on the target is behind."""
    TARGET_GROUP_ACTIVE = "target_group_active"
    """As above, because the group is active on the target: MM2 does not touch it then."""
    TASKS_NOT_RUNNING = "tasks_not_running"
    FLOW_NOT_ALIVE = "flow_not_alive"
    SOURCE_UNREADABLE = "source_unreadable"
    """The group's commits are those of the last successful read."""


class OffsetMap(Protocol):
    """Where source offsets lie on the target; SyncRuns is one."""

    def target_bounds(self, upstream_offset: int, head: Head | None = None) -> Bounds | None:
        """Where a group that comes to *upstream_offset* next should go on."""

    def redelivery_bounds(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Bounds | None:
        """Target records from *downstream_offset* on that hold offsets below *upstream_offset*."""

    def reaches(self, upstream_offset: int) -> bool:
        """Whether an offset sync at or below *upstream_offset* is known to MirrorMaker 2."""


class SeenCheckpoint(NamedTuple):
    """The newest checkpoint of a (group, partition)."""

    upstream: int
    downstream: int
    at: float


class LogRange(NamedTuple):
    """Offsets that a partition holds: [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PartitionEvidence:
    """One partition on which the group has committed an offset on the source."""

    source: TopicPartition
    commit: int
    checkpoint: SeenCheckpoint | None
    target_log: LogRange | None
    """None: the target has no such partition."""
    target_topic_exists: bool = True
    source_end: int | None = None
    offset_map: OffsetMap | None = None
    head: Head | None = None
    untranslated: Untranslated | None = None
    """What OffsetSyncStore says where it has no translation."""
    target_commit: int | None = None
    """The group's own offset on the target."""


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """A consumer group of the source and what surrounds it."""

    group: str
    partitions: tuple[PartitionEvidence, ...]
    flow_alive: bool = True
    """Not stopped; an idle flow is alive, an unknown one is not known to be."""
    tasks_running: bool | None = None
    source_readable: bool = True
    syncs_group_offsets: bool = False
    target_group_active: bool = False


@dataclass(frozen=True, slots=True)
class ReadinessLimits:
    """What is acceptable, per group. Sums over its partitions."""

    max_redelivery_records: int = 10_000
    max_checkpoint_lag_records: int = 10_000
    group_sync_grace_period: float = 120.0
    """Seconds within which a checkpoint has to show in the group's offsets on the target."""


class Blocked(NamedTuple):
    """One reason, with its worst partition and figure where it has any."""

    reason: BlockReason
    partition: TopicPartition | None = None
    records: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionReadiness:
    """The figures of one partition.

    `checkpoint_lag` is negative when the group was rewound behind its checkpoint; None without
    one. The redelivery bounds are None where nothing is known to start from.
    """

    source: TopicPartition
    checkpoint_lag: int | None
    redelivery_lower: int | None
    redelivery_upper: int | None
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True, slots=True)
class GroupReadiness:
    """The verdict on a group; `ready` exactly when nothing is `blocked`.

    The sums leave out partitions whose figure is None: `blocked` then names them.
    """

    group: str
    ready: bool
    blocked: tuple[Blocked, ...]
    checkpoint_lag: int | None
    redelivery_lower: int | None
    redelivery_upper: int | None
    partitions: tuple[PartitionReadiness, ...]


def judge_group(evidence: GroupEvidence, budget: ReadinessLimits, now: float) -> GroupReadiness:
    """Judge one group.

    Silence of checkpoints is normal for an idle group, so they are judged by lag, never by age.
    """
    judged = tuple(_judge_partition(each, evidence, budget, now) for each in evidence.partitions)
    lag = _total(each.checkpoint_lag for each in judged)
    lower = _total(each.redelivery_lower for each in judged)
    upper = _total(each.redelivery_upper for each in judged)
    found = [blocked for each in judged for blocked in each.blocked]
    if lag is not None and lag > budget.max_checkpoint_lag_records:
        worst = max(judged, key=lambda each: each.checkpoint_lag or 0)
        found.append(Blocked(BlockReason.CHECKPOINT_STALE, worst.source, worst.checkpoint_lag))
    if upper is not None and upper > budget.max_redelivery_records:
        worst = max(judged, key=lambda each: each.redelivery_upper or 0)
        found.append(
            Blocked(BlockReason.REDELIVERY_OVER_BUDGET, worst.source, worst.redelivery_upper)
        )
    found.extend(Blocked(reason) for reason in _surroundings(evidence))
    blocked = _worst_of_each(found)
    return GroupReadiness(evidence.group, not blocked, blocked, lag, lower, upper, judged)


def _judge_partition(
    part: PartitionEvidence, evidence: GroupEvidence, budget: ReadinessLimits, now: float
) -> PartitionReadiness:
    if part.target_log is None:
        reason = (
            BlockReason.TARGET_PARTITIONS_MISSING
            if part.target_topic_exists
            else BlockReason.TARGET_TOPIC_MISSING
        )
        return _without_figures(part, reason)
    if part.checkpoint is None:
        if _nothing_to_resume(part, part.target_log):
            return PartitionReadiness(part.source, None, 0, 0, ())
        return _without_figures(part, _why_no_checkpoint(part))
    checkpoint, log = part.checkpoint, part.target_log
    lag = part.commit - checkpoint.upstream
    found: list[Blocked] = []
    if checkpoint.downstream < log.start:
        gone = log.start - checkpoint.downstream
        found.append(Blocked(BlockReason.CHECKPOINT_EXPIRED, part.source, gone))
    elif checkpoint.downstream > log.end:
        ahead = checkpoint.downstream - log.end
        found.append(Blocked(BlockReason.CHECKPOINT_AHEAD, part.source, ahead))
    else:
        skipped = _surely_skipped(part, checkpoint)
        if skipped > 0:
            found.append(Blocked(BlockReason.WOULD_SKIP_RECORDS, part.source, skipped))
    if evidence.syncs_group_offsets and now - checkpoint.at > budget.group_sync_grace_period:
        behind = checkpoint.downstream - (part.target_commit or 0)
        if part.target_commit is None or behind > 0:
            reason = (
                BlockReason.TARGET_GROUP_ACTIVE
                if evidence.target_group_active
                else BlockReason.TARGET_OFFSET_BEHIND
            )
            found.append(Blocked(reason, part.source, behind))
    lower, upper = _redelivery(part, checkpoint, log)
    return PartitionReadiness(part.source, lag, lower, upper, tuple(found))


def _without_figures(part: PartitionEvidence, reason: BlockReason) -> PartitionReadiness:
    return PartitionReadiness(part.source, None, None, None, (Blocked(reason, part.source),))


def _nothing_to_resume(part: PartitionEvidence, log: LogRange) -> bool:
    """Neither side holds a record the group could miss or repeat.

    Consumers commit for empty partitions, too, and MM2 writes no checkpoint for those.
    """
    return log.start == log.end and part.source_end is not None and part.source_end <= part.commit


def _why_no_checkpoint(part: PartitionEvidence) -> BlockReason:
    if part.untranslated is Untranslated.NO_SYNC:
        return BlockReason.NO_OFFSET_SYNC
    if part.untranslated is Untranslated.BEHIND_OLDEST_SYNC:
        return BlockReason.BEHIND_OLDEST_SYNC
    return BlockReason.NO_CHECKPOINT


def _surely_skipped(part: PartitionEvidence, checkpoint: SeenCheckpoint) -> int:
    if part.offset_map is None:
        return 0
    place = part.offset_map.target_bounds(part.commit, part.head)
    if place is None or place.upper is None:
        return 0
    return checkpoint.downstream - place.upper


def _redelivery(
    part: PartitionEvidence, checkpoint: SeenCheckpoint, log: LogRange
) -> tuple[int, int]:
    """Bounds of what would be read again: at most all that the target holds from there on."""
    start = max(checkpoint.downstream, log.start)
    most = max(log.end - start, 0)
    if part.offset_map is None:
        return 0, most
    bounds = part.offset_map.redelivery_bounds(part.commit, start, part.head)
    if bounds is None:
        return 0, most
    upper = most if bounds.upper is None else min(bounds.upper, most)
    return min(bounds.lower, upper), upper


def _surroundings(evidence: GroupEvidence) -> Iterator[BlockReason]:
    if evidence.tasks_running is False:
        yield BlockReason.TASKS_NOT_RUNNING
    if not evidence.flow_alive:
        yield BlockReason.FLOW_NOT_ALIVE
    if not evidence.source_readable:
        yield BlockReason.SOURCE_UNREADABLE


def _worst_of_each(found: Iterable[Blocked]) -> tuple[Blocked, ...]:
    """One entry per reason, in the order of the enumeration, with the largest figure."""
    worst: dict[BlockReason, Blocked] = {}
    for blocked in found:
        known = worst.get(blocked.reason)
        if known is None or (blocked.records or 0) > (known.records or 0):
            worst[blocked.reason] = blocked
    return tuple(worst[reason] for reason in BlockReason if reason in worst)


def _total(figures: Iterable[int | None]) -> int | None:
    """Sum of what is known; None when nothing is."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
