"""Failover readiness: whether a consumer group would resume correctly on the target.

A consumer that moves to the target resumes at the group's commit there, if there is one.
MirrorMaker 2 writes it where it syncs group offsets: later than the checkpoint, never while the
group has members there, and never backwards. Without a commit on the target, and without such a
sync, the newest checkpoint counts, which `RemoteClusterUtils.translateOffsets` returns. Whether the
flow is alive does not matter: a failover happens when it is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from mm2slo_core.offset_translation import Bounds, Failover, Head, Untranslated
from mm2slo_core.topology import TopicPartition


class BlockReason(StrEnum):
    """Why a group is blocked; the value is the label `reason`."""

    NOT_REPLICATED_STREAMS = "not_replicated_streams"
    """A Streams group (KIP-1071): MM2 neither lists it nor writes checkpoints for it."""
    NOT_REPLICATED_SHARE = "not_replicated_share"
    """Likewise a share group (KIP-932), or a Streams group that has not committed: clients do not
    distinguish these."""
    NO_CHECKPOINT = "no_checkpoint"
    NO_OFFSET_SYNC = "no_offset_sync"
    """No checkpoint: MM2 has written no offset sync for the partition."""
    BEHIND_OLDEST_SYNC = "behind_oldest_sync"
    """No checkpoint: the group is behind all offset syncs that MM2 keeps."""
    CHECKPOINT_STALE = "checkpoint_stale"
    """The checkpoint lag exceeds its limit."""
    NOT_SYNCED_YET = "not_synced_yet"
    """MM2 syncs group offsets, but the group has no commit on the target: the consumer's reset
    policy would decide."""
    TARGET_OFFSET_EXPIRED = "target_offset_expired"
    """The group would resume below the target's log start: its offset would be reset."""
    TARGET_OFFSET_BEYOND_END = "target_offset_beyond_end"
    """The group would resume beyond the target's end: its offset would be reset."""
    SOURCE_COMMIT_BEYOND_END = "source_commit_beyond_end"
    """The commit is beyond the end of the source's log: the offset would be reset there, too."""
    WOULD_SKIP_RECORDS = "would_skip_records"
    """The group would resume beyond its position: records would never be read (the group was
    rewound, or MM2 before 3.5 translated too far)."""
    MAY_SKIP_RECORDS = "may_skip_records"
    """The group may resume beyond its position: the offset syncs do not decide it."""
    REDELIVERY_OVER_LIMIT = "redelivery_over_limit"
    TARGET_TOPIC_MISSING = "target_topic_missing"
    TARGET_PARTITIONS_MISSING = "target_partitions_missing"
    TARGET_GROUP_ACTIVE = "target_group_active"
    """The group has members on the target, where its commit is not that of the source: MM2 syncs
    only inactive groups. Whether it skips records is not judged."""
    SOURCE_UNREADABLE = "source_unreadable"
    """The source answers, but not with the group's committed offsets."""
    TARGET_UNREADABLE = "target_unreadable"
    """The target answers, but not with the group's committed offsets, or not with the offsets of a
    copy's partition."""


@dataclass(frozen=True, slots=True)
class ReadinessLimits:
    """Limits per group, for the sums over its partitions."""

    max_redelivery_records: int = 10_000
    max_checkpoint_lag_records: int = 10_000
    group_sync_grace_period: float = 120.0
    """Seconds for which the commit of an active group may be behind its checkpoint."""


class Blocked(NamedTuple):
    """A reason, with its worst partition and number of records if it has any."""

    reason: BlockReason
    partition: TopicPartition | None = None
    records: int | None = None


class PartitionReadiness(NamedTuple):
    """The readiness of one partition.

    `checkpoint_lag` is negative if the group was rewound behind its checkpoint; None without a
    checkpoint. The redelivery bounds are None if it is unknown where the group would resume.
    """

    source: TopicPartition
    checkpoint_lag: int | None
    redelivery_lower: int | None
    redelivery_upper: int | None
    blocked: tuple[Blocked, ...]
    skipped: tuple[int, int] = (0, 0)
    """Bounds of the records that would never be read."""


@dataclass(frozen=True, slots=True)
class GroupReadiness:
    """The readiness of a group; `ready` exactly if `blocked` is empty.

    Sums over partitions. Those whose value is None count as 0, but there is no upper bound of the
    redelivery then; `blocked` has the reason.
    """

    group: str
    ready: bool
    blocked: tuple[Blocked, ...]
    checkpoint_lag: int | None
    redelivery_lower: int | None
    redelivery_upper: int | None
    partitions: tuple[PartitionReadiness, ...]
    skipped: tuple[int, int] = (0, 0)
    """Bounds of the records that would never be read; offsets, where the copy is compacted."""


def evaluate_group(evidence: GroupEvidence, limits: ReadinessLimits, now: float) -> GroupReadiness:
    """Evaluate one group.

    MM2 writes no checkpoints for idle groups, so checkpoints are evaluated by lag, never by age.
    """
    partitions = tuple(
        _evaluate_partition(each, evidence, limits, now) for each in evidence.partitions
    )
    lag = _total(each.checkpoint_lag for each in partitions)
    lower = _total(each.redelivery_lower for each in partitions)
    uppers = [each.redelivery_upper for each in partitions]
    upper = None if None in uppers else _total(uppers)
    reasons = [blocked for each in partitions for blocked in each.blocked]
    if lag is not None and lag > limits.max_checkpoint_lag_records:
        worst = max(partitions, key=lambda each: each.checkpoint_lag or 0)
        reasons.append(Blocked(BlockReason.CHECKPOINT_STALE, worst.source, worst.checkpoint_lag))
    if upper is not None and upper > limits.max_redelivery_records:
        worst = max(partitions, key=lambda each: each.redelivery_upper or 0)
        reasons.append(
            Blocked(BlockReason.REDELIVERY_OVER_LIMIT, worst.source, worst.redelivery_upper)
        )
    if not evidence.commits_readable:
        reasons.append(Blocked(BlockReason.SOURCE_UNREADABLE))
    if not evidence.target_commits_readable:
        reasons.append(Blocked(BlockReason.TARGET_UNREADABLE))
    if not evidence.is_carried:
        # What an earlier checkpoint says is of no use: none will follow.
        reasons = [Blocked(BlockReason.NOT_REPLICATED_STREAMS)]
    blocked = _worst_of_each(reasons)
    least, most = (sum(each.skipped[bound] for each in partitions) for bound in (0, 1))
    return GroupReadiness(
        group=evidence.group,
        ready=not blocked,
        blocked=blocked,
        checkpoint_lag=lag,
        redelivery_lower=lower,
        redelivery_upper=upper,
        partitions=partitions,
        skipped=(least, most),
    )


def uncarried_without_commits(group: str) -> GroupReadiness:
    """The readiness of a group without commits that MM2 does not list: a share group has none."""
    return GroupReadiness(
        group=group,
        ready=False,
        blocked=(Blocked(BlockReason.NOT_REPLICATED_SHARE),),
        checkpoint_lag=None,
        redelivery_lower=None,
        redelivery_upper=None,
        partitions=(),
    )


def _evaluate_partition(
    part: PartitionEvidence, evidence: GroupEvidence, limits: ReadinessLimits, now: float
) -> PartitionReadiness:
    checkpoint, log, start = part.checkpoint, part.target_log, _resume_offset(part, evidence)
    lag = None if checkpoint is None else part.commit - checkpoint.upstream
    if start is None and checkpoint is None and _nothing_to_resume(part):
        return PartitionReadiness(part.source, None, 0, 0, ())
    # The end itself is a valid offset. Outside of the log, the broker answers OFFSET_OUT_OF_RANGE,
    # and the consumer goes where `auto.offset.reset` says.
    if log is None or start is None or part.beyond_end or not log.start <= start <= log.end:
        reason = _why_unknown(part, evidence, start)
        return PartitionReadiness(part.source, lag, None, None, (reason,))
    (least, most), redelivery = _failover(part, start, log)
    reasons: list[Blocked] = []
    if evidence.target_group_active and part.target_commit is not None:
        # Its members commit what they read there, whatever the group has read on the source.
        # `MirrorCheckpointTask` syncs empty groups only, and no commit that would go back.
        behind = 0 if checkpoint is None else checkpoint.downstream - start
        first, last = sorted((start, start + behind))
        redelivery = (
            _failover(part, min(last, log.end), log)[1][0],
            _failover(part, max(first, log.start), log)[1][1],
        )
        if evidence.syncs_group_offsets and checkpoint is not None:
            is_late = now - checkpoint.at > limits.group_sync_grace_period
            most = max(most, behind) if is_late else most
        if most:
            reasons.append(Blocked(BlockReason.TARGET_GROUP_ACTIVE, part.source, most))
        least = most = 0
    elif least:
        reasons.append(Blocked(BlockReason.WOULD_SKIP_RECORDS, part.source, least))
    elif most:
        reasons.append(Blocked(BlockReason.MAY_SKIP_RECORDS, part.source, most))
    return PartitionReadiness(part.source, lag, *redelivery, tuple(reasons), (least, most))


def _resume_offset(part: PartitionEvidence, evidence: GroupEvidence) -> int | None:
    """Return where a consumer on the target would resume; None if its reset policy decides."""
    if part.target_commit is not None:
        return part.target_commit
    # MirrorMaker 2 has yet to sync: until then the consumer finds no commit and applies
    # `auto.offset.reset`, whatever the checkpoint says (KIP-545).
    if evidence.syncs_group_offsets or not evidence.target_commits_readable:
        return None
    return None if part.checkpoint is None else part.checkpoint.downstream


def _nothing_to_resume(part: PartitionEvidence) -> bool:
    """Return whether neither side has a record for the group to miss or read again.

    Consumers also commit offsets of empty partitions, and MM2 writes no checkpoints for these.
    """
    log = part.target_log
    if log is None or part.source_end is None or part.beyond_end:
        return False
    return log.start == log.end and part.source_end <= part.commit


def _why_unknown(part: PartitionEvidence, evidence: GroupEvidence, start: int | None) -> Blocked:
    """Return why a consumer on the target has no valid offset, or the group none on the source."""
    log = part.target_log
    if log is None:
        return Blocked(part.target_missing or BlockReason.TARGET_UNREADABLE, part.source)
    if part.beyond_end:
        return Blocked(BlockReason.SOURCE_COMMIT_BEYOND_END, part.source, part.beyond_end)
    if start is None:
        return Blocked(_why_no_offset(part, evidence), part.source)
    if start < log.start:
        return Blocked(BlockReason.TARGET_OFFSET_EXPIRED, part.source, log.start - start)
    return Blocked(BlockReason.TARGET_OFFSET_BEYOND_END, part.source, start - log.end)


def _why_no_offset(part: PartitionEvidence, evidence: GroupEvidence) -> BlockReason:
    if not evidence.target_commits_readable:
        return BlockReason.TARGET_UNREADABLE
    if part.checkpoint is not None:
        if evidence.target_group_active:
            return BlockReason.TARGET_GROUP_ACTIVE
        return BlockReason.NOT_SYNCED_YET
    if part.untranslated is Untranslated.NO_SYNC:
        return BlockReason.NO_OFFSET_SYNC
    if part.untranslated is Untranslated.BEHIND_OLDEST_SYNC:
        return BlockReason.BEHIND_OLDEST_SYNC
    return BlockReason.NO_CHECKPOINT


def _failover(
    part: PartitionEvidence, start: int, log: LogRange
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return bounds of the records that are skipped and of those redelivered from *start* on."""
    translation = None
    if part.offset_map is not None:
        translation = part.offset_map.failover(part.commit, start, part.head)
    resume, redelivery = (Bounds(0, None), Bounds(0, None)) if translation is None else translation
    earliest = max(resume.lower, log.start)
    if part.checkpoint is not None and part.commit >= part.checkpoint.upstream:
        # MirrorMaker 2 never translates too far (since 3.5), and may have known more syncs.
        earliest = max(earliest, part.checkpoint.downstream)
    least = 0 if resume.upper is None else max(start - max(resume.upper, log.start), 0)
    most = max(start - earliest, least)
    upper = log.end - start
    if redelivery.upper is not None:
        upper = min(upper, redelivery.upper)
    return (least, most), (min(redelivery.lower, upper), upper)


def _worst_of_each(reasons: Iterable[Blocked]) -> tuple[Blocked, ...]:
    """Keep one entry per reason, the one with the most records, in the order of BlockReason."""
    worst: dict[BlockReason, Blocked] = {}
    for blocked in reasons:
        known = worst.get(blocked.reason)
        if known is None or (blocked.records or 0) > (known.records or 0):
            worst[blocked.reason] = blocked
    return tuple(worst[reason] for reason in BlockReason if reason in worst)


def _total(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class OffsetMap(Protocol):
    """Maps source offsets to target offsets, as SyncRuns does."""

    def failover(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Failover | None:
        """Return where a group with the committed offset *upstream_offset* should resume.

        And what it would read again from *downstream_offset* on.
        """

    def reaches(self, upstream_offset: int) -> bool:
        """Return whether MirrorMaker 2 has an offset sync at or below *upstream_offset*."""


class NewestCheckpoint(NamedTuple):
    upstream: int
    downstream: int
    at: float
    """When it was written, by MirrorMaker 2's clock."""
    received_at: float = 0.0
    """When it was read, by the exporter's clock; `at` if it had been written before."""


class LogRange(NamedTuple):
    """The offsets in a partition: [start, end)."""

    start: int
    end: int


class PartitionEvidence(NamedTuple):
    """A source partition with a committed offset of the group."""

    source: TopicPartition
    commit: int
    checkpoint: NewestCheckpoint | None
    target_log: LogRange | None
    """None: the partition does not exist on the target, or cannot be read."""
    target_missing: BlockReason | None = None
    """What does not exist on the target."""
    source_end: int | None = None
    offset_map: OffsetMap | None = None
    head: Head | None = None
    untranslated: Untranslated | None = None
    """Why OffsetSyncStore has no translation."""
    target_commit: int | None = None
    """The group's committed offset on the target."""
    beyond_end: int = 0
    """How far the group's commit on the source is beyond the end of the log there, if it is."""


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """A consumer group of the source."""

    group: str
    partitions: tuple[PartitionEvidence, ...]
    commits_readable: bool = True
    """False if the source answers, but not with the group's committed offsets."""
    target_commits_readable: bool = True
    """False if the target answers, but not with the group's committed offsets."""
    syncs_group_offsets: bool = False
    target_group_active: bool = False
    is_carried: bool = True
    """False for a group of a type that MirrorMaker 2 does not list."""
