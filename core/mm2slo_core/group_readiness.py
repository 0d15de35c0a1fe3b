"""Failover readiness: whether a consumer group would resume correctly on the target.

Evaluates the newest checkpoint on the target, which a failover would use through
`RemoteClusterUtils.translateOffsets` or synced group offsets, never mm2slo's own translation.
Whether the flow is alive does not matter: a failover happens when it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.offset_sync_store import Untranslated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.group_evidence import (
        GroupEvidence,
        LogRange,
        NewestCheckpoint,
        PartitionEvidence,
    )
    from mm2slo_core.topology import TopicPartition


class BlockReason(StrEnum):
    """Why a group is blocked; the value is the label `reason`."""

    NO_CHECKPOINT = "no_checkpoint"
    NO_OFFSET_SYNC = "no_offset_sync"
    """No checkpoint: MM2 has written no offset sync for the partition."""
    BEHIND_OLDEST_SYNC = "behind_oldest_sync"
    """No checkpoint: the group is behind all offset syncs that MM2 keeps."""
    CHECKPOINT_STALE = "checkpoint_stale"
    """The checkpoint lag exceeds its limit."""
    CHECKPOINT_EXPIRED = "checkpoint_expired"
    """The checkpoint is below the target's log start: the consumer's offset would be reset."""
    CHECKPOINT_AHEAD = "checkpoint_ahead"
    """The checkpoint is beyond the target's end: the consumer's offset would be reset."""
    WOULD_SKIP_RECORDS = "would_skip_records"
    """The checkpoint is beyond the group's position: records would never be read (the group was
    rewound, or MM2 before 3.5 translated too far)."""
    REDELIVERY_OVER_LIMIT = "redelivery_over_limit"
    TARGET_TOPIC_MISSING = "target_topic_missing"
    TARGET_PARTITIONS_MISSING = "target_partitions_missing"
    TARGET_OFFSET_BEHIND = "target_offset_behind"
    """MM2 syncs group offsets, and the group's offset on the target is behind."""
    TARGET_GROUP_ACTIVE = "target_group_active"
    """The group's offset on the target is behind because the group is active there: MM2 syncs
    only inactive groups."""
    SOURCE_UNREADABLE = "source_unreadable"
    """The source answers, but not with the group's committed offsets."""


@dataclass(frozen=True, slots=True)
class ReadinessLimits:
    """Limits per group, for the sums over its partitions."""

    max_redelivery_records: int = 10_000
    max_checkpoint_lag_records: int = 10_000
    group_sync_grace_period: float = 120.0
    """Seconds until a checkpoint must appear in the group's offsets on the target."""


class Blocked(NamedTuple):
    """A reason, with its worst partition and number of records if it has any."""

    reason: BlockReason
    partition: TopicPartition | None = None
    records: int | None = None


class PartitionReadiness(NamedTuple):
    """The readiness of one partition.

    `checkpoint_lag` is negative if the group was rewound behind its checkpoint; None without a
    checkpoint. The redelivery bounds are None without a known start offset.
    """

    source: TopicPartition
    checkpoint_lag: int | None
    redelivery_lower: int | None
    redelivery_upper: int | None
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True, slots=True)
class GroupReadiness:
    """The readiness of a group; `ready` exactly if `blocked` is empty.

    The sums omit partitions whose value is None; `blocked` has these.
    """

    group: str
    ready: bool
    blocked: tuple[Blocked, ...]
    checkpoint_lag: int | None
    redelivery_lower: int | None
    redelivery_upper: int | None
    partitions: tuple[PartitionReadiness, ...]


def evaluate_group(evidence: GroupEvidence, limits: ReadinessLimits, now: float) -> GroupReadiness:
    """Evaluate one group.

    MM2 writes no checkpoints for idle groups, so checkpoints are evaluated by lag, never by age.
    """
    partitions = tuple(
        _evaluate_partition(each, evidence, limits, now) for each in evidence.partitions
    )
    lag = _total(each.checkpoint_lag for each in partitions)
    lower = _total(each.redelivery_lower for each in partitions)
    upper = _total(each.redelivery_upper for each in partitions)
    found = [blocked for each in partitions for blocked in each.blocked]
    if lag is not None and lag > limits.max_checkpoint_lag_records:
        worst = max(partitions, key=lambda each: each.checkpoint_lag or 0)
        found.append(Blocked(BlockReason.CHECKPOINT_STALE, worst.source, worst.checkpoint_lag))
    if upper is not None and upper > limits.max_redelivery_records:
        worst = max(partitions, key=lambda each: each.redelivery_upper or 0)
        found.append(
            Blocked(BlockReason.REDELIVERY_OVER_LIMIT, worst.source, worst.redelivery_upper)
        )
    if not evidence.commits_readable:
        found.append(Blocked(BlockReason.SOURCE_UNREADABLE))
    blocked = _worst_of_each(found)
    return GroupReadiness(evidence.group, not blocked, blocked, lag, lower, upper, partitions)


def _evaluate_partition(
    part: PartitionEvidence, evidence: GroupEvidence, limits: ReadinessLimits, now: float
) -> PartitionReadiness:
    if part.target_log is None:
        reason = (
            BlockReason.TARGET_PARTITIONS_MISSING
            if part.target_topic_exists
            else BlockReason.TARGET_TOPIC_MISSING
        )
        return _without_values(part, reason)
    if part.checkpoint is None:
        if _nothing_to_resume(part, part.target_log):
            return PartitionReadiness(part.source, None, 0, 0, ())
        return _without_values(part, _why_no_checkpoint(part))
    checkpoint, log = part.checkpoint, part.target_log
    lag = part.commit - checkpoint.upstream
    skipped, lower, upper = _failover(part, checkpoint, log)
    found: list[Blocked] = []
    if checkpoint.downstream < log.start:
        removed = log.start - checkpoint.downstream
        found.append(Blocked(BlockReason.CHECKPOINT_EXPIRED, part.source, removed))
    elif checkpoint.downstream > log.end:
        ahead = checkpoint.downstream - log.end
        found.append(Blocked(BlockReason.CHECKPOINT_AHEAD, part.source, ahead))
    elif skipped:
        found.append(Blocked(BlockReason.WOULD_SKIP_RECORDS, part.source, skipped))
    if evidence.syncs_group_offsets and now - checkpoint.at > limits.group_sync_grace_period:
        behind = checkpoint.downstream - (part.target_commit or 0)
        if part.target_commit is None or behind > 0:
            reason = (
                BlockReason.TARGET_GROUP_ACTIVE
                if evidence.target_group_active
                else BlockReason.TARGET_OFFSET_BEHIND
            )
            found.append(Blocked(reason, part.source, behind))
    return PartitionReadiness(part.source, lag, lower, upper, tuple(found))


def _without_values(part: PartitionEvidence, reason: BlockReason) -> PartitionReadiness:
    return PartitionReadiness(part.source, None, None, None, (Blocked(reason, part.source),))


def _nothing_to_resume(part: PartitionEvidence, log: LogRange) -> bool:
    """Return whether neither side has a record for the group to miss or read again.

    Consumers also commit offsets of empty partitions, and MM2 writes no checkpoints for these.
    """
    return log.start == log.end and part.source_end is not None and part.source_end <= part.commit


def _why_no_checkpoint(part: PartitionEvidence) -> BlockReason:
    if part.untranslated is Untranslated.NO_SYNC:
        return BlockReason.NO_OFFSET_SYNC
    if part.untranslated is Untranslated.BEHIND_OLDEST_SYNC:
        return BlockReason.BEHIND_OLDEST_SYNC
    return BlockReason.NO_CHECKPOINT


def _failover(
    part: PartitionEvidence, checkpoint: NewestCheckpoint, log: LogRange
) -> tuple[int, int, int]:
    """Return the least number of records that would never be read, and bounds of the redelivery.

    At most all target records from the checkpoint on are redelivered.
    """
    start = max(checkpoint.downstream, log.start)
    most = max(log.end - start, 0)
    offsets = part.offset_map
    found = None if offsets is None else offsets.failover(part.commit, start, part.head)
    if found is None:
        return 0, 0, most
    (_, resume_by), (lower, upper) = found
    skipped = 0 if resume_by is None else max(checkpoint.downstream - resume_by, 0)
    upper = most if upper is None else min(upper, most)
    return skipped, min(lower, upper), upper


def _worst_of_each(found: Iterable[Blocked]) -> tuple[Blocked, ...]:
    """Keep one entry per reason, the one with the most records, in the order of BlockReason."""
    worst: dict[BlockReason, Blocked] = {}
    for blocked in found:
        known = worst.get(blocked.reason)
        if known is None or (blocked.records or 0) > (known.records or 0):
            worst[blocked.reason] = blocked
    return tuple(worst[reason] for reason in BlockReason if reason in worst)


def _total(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
