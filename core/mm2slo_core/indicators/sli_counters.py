"""SLIs as counters of good, total and unknown events, and the SLIs of time slices.

A settled event increments good and total together, once. An event that cannot be known increments
`unknown`, which lowers coverage and no ratio. Counters never decrease: an unknown event that later
evidence settles has incremented both.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.offset_translation import SyncLike
from mm2slo_core.topology import TopicPartition

ALL = "all"
"""The tier of SLIs that have only one."""


class Sli(StrEnum):
    """The value is the label `sli`."""

    AVAILABILITY = "availability"
    LATENCY = "latency"
    DATA_FRESHNESS = "data_freshness"
    COMPLETENESS = "completeness"
    UNIQUENESS = "uniqueness"
    ORDER = "order"
    AFFINITY = "affinity"
    CHECKPOINT_FRESHNESS = "checkpoint_freshness"


class SliKey(NamedTuple):
    """An SLI with one threshold."""

    sli: Sli
    tier: str = ALL


class SliCount(NamedTuple):
    good: int = 0
    total: int = 0
    unknown: int = 0


NO_EVENTS = SliCount()
GOOD = SliCount(1, 1, 0)
BAD = SliCount(0, 1, 0)
UNKNOWN = SliCount(0, 0, 1)


def latency_tier(seconds: float) -> str:
    """Return the label of a latency threshold: 10.0 -> `10s`, 0.5 -> `0.5s`."""
    return f"{seconds:.12g}s"


class SliCounters:
    """Counters of a fixed set of SLIs, each initialised at 0.

    A series that appears with its first event would hide that event from `rate()`.
    """

    __slots__ = ("_counts",)

    def __init__(
        self, keys: Iterable[SliKey], counted: Mapping[SliKey, SliCount] | None = None
    ) -> None:
        """*counted*: continue from these."""
        before = counted or {}
        self._counts = {key: before.get(key, NO_EVENTS) for key in keys}

    def __contains__(self, key: SliKey) -> bool:
        return key in self._counts

    def __getitem__(self, key: SliKey) -> SliCount:
        return self._counts[key]

    def add(self, key: SliKey, events: SliCount) -> None:
        """Count *events*.

        Raises KeyError for an undeclared SLI, and ValueError for negative events or more good than
        total events.
        """
        if not 0 <= events.good <= events.total or events.unknown < 0:
            raise ValueError(f"invalid {events}; expected 0 <= good <= total and unknown >= 0")
        good, total, unknown = self._counts[key]
        self._counts[key] = SliCount(
            good + events.good, total + events.total, unknown + events.unknown
        )

    def add_all(self, counts: Mapping[SliKey, SliCount]) -> None:
        for key, events in counts.items():
            self.add(key, events)

    def snapshot(self) -> dict[SliKey, SliCount]:
        """Return a copy, in the order of declaration."""
        return dict(self._counts)


class DueSlices(NamedTuple):
    """Time slices that ended since the last call: at most one is measured, the others missed."""

    measured: int
    missed: int


class SliceClock:
    """Divides time into slices of *length* seconds, aligned to the epoch.

    The newest ended slice is measured by current values, which must be no older than a slice.
    Earlier ones were missed and are unknown, up to *limit*, so that an exporter that was down for
    a month does not flood the counters. All replicas use the same slices.
    """

    __slots__ = ("_last", "_length", "_limit")

    def __init__(self, length: float, started_at: float, limit: int = 5760) -> None:
        """Start after *started_at*: the start, or the last slice measured before a restart."""
        if length <= 0:
            raise ValueError(f"slice length is {length!r}; expected a positive number of seconds")
        self._length = length
        self._limit = limit
        self._last = int(started_at // length)

    def due(self, now: float) -> DueSlices:
        """Return the slices that ended since the last call; none if the clock went back."""
        current = int(now // self._length)
        ended = current - self._last
        if ended <= 0:
            return DueSlices(0, 0)
        self._last = current
        return DueSlices(1, min(ended - 1, self._limit))


# MM2 writes a heartbeat a second (`emit.heartbeats.interval.seconds`); a rebalance of Connect takes
# some of these.
DEFAULT_HEARTBEAT_AGE = 30.0


class FreshnessClass(NamedTuple):
    """Partitions with a common data freshness objective: lag in seconds at most `threshold`."""

    name: str
    threshold: float


def data_freshness(
    slices: DueSlices,
    lags: Mapping[FreshnessClass, Iterable[float | None]],
) -> dict[SliKey, SliCount]:
    """Count partition-slices: good if the lag in seconds is within the threshold of its class.

    A lag of None is unknown (cluster unreachable, position not known). Each missed slice is unknown
    for every partition.
    """
    counts: dict[SliKey, SliCount] = {}
    for (name, threshold), seconds in lags.items():
        good = bad = unknown = 0
        for lag in seconds:
            if lag is None:
                unknown += 1
            elif lag <= threshold:
                good += 1
            else:
                bad += 1
        partitions = good + bad + unknown
        counts[SliKey(Sli.DATA_FRESHNESS, name)] = SliCount(
            good * slices.measured,
            (good + bad) * slices.measured,
            unknown * slices.measured + partitions * slices.missed,
        )
    return counts


def heartbeat_availability(
    slices: DueSlices,
    heartbeat_age: float | None,
    *,
    target_readable: bool,
    source_unreachable_for: float = 0.0,
) -> SliCount:
    """Count availability without canaries: good if a heartbeat arrived recently enough.

    Unknown if the target is unreadable, if the source has been unreachable long enough
    (*source_unreachable_for* seconds) to explain the missing heartbeats, and if no heartbeat ever
    arrived (they may be disabled).
    """
    if not slices.measured:
        return NO_EVENTS
    if heartbeat_age is None or not target_readable:
        events = UNKNOWN
    elif heartbeat_age <= DEFAULT_HEARTBEAT_AGE:
        events = GOOD
    elif (
        source_unreachable_for > 0
        and heartbeat_age - source_unreachable_for <= DEFAULT_HEARTBEAT_AGE
    ):
        events = UNKNOWN
    else:
        events = BAD
    return SliCount(events.good, events.total, events.unknown + slices.missed)


class GroupOffsets(NamedTuple):
    """Committed offsets of a group, and its newest checkpoints by partition of the copies."""

    commits: Mapping[TopicPartition, int]
    checkpoints: Mapping[TopicPartition, NewestCheckpoint]


class _Uncovered(NamedTuple):
    """The oldest commit of a partition that no checkpoint covers."""

    since: float
    offset: int


_SPARSITY = 3
"""The greatest distance between two offset syncs that MM2 keeps, in that of the newer one from the
newest. Simulated with a sync each *offset_lag_max* records: invariants B and C of OffsetSyncStore
alone allow 4."""


class CheckpointFreshness:
    """Counts group-slices of groups whose commits changed: good if no commit is overdue.

    MM2 writes no checkpoint while the translated offset does not advance
    (MirrorCheckpointTask.checkpointIsMoreRecent), so age alone would count idle groups, and those
    between two offset syncs, as bad. Overdue is a commit that no checkpoint has covered for three
    checkpoint intervals. One covers it if it is no further behind than two offset syncs may be
    apart, since the translated offset advances from sync to sync: MM2 writes one each
    *offset_lag_max* records, and keeps fewer of them the older they are.
    """

    __slots__ = (
        "_copies",
        "_groups",
        "_moved_last",
        "_uncovered",
        "checkpoint_interval",
        "offset_lag_max",
    )

    def __init__(self, checkpoint_interval: float, offset_lag_max: int) -> None:
        self.checkpoint_interval = checkpoint_interval
        self.offset_lag_max = offset_lag_max
        self._copies: Mapping[str, str] = {}
        self._groups: Mapping[str, GroupOffsets] = {}
        self._uncovered: dict[str, dict[TopicPartition, _Uncovered]] = {}
        self._moved_last: AbstractSet[str] = frozenset()

    def count(
        self,
        now: float,
        slices: DueSlices,
        copies: Mapping[str, str],
        groups: Mapping[str, GroupOffsets] | None,
        syncs: Mapping[TopicPartition, SyncLike],
    ) -> SliCount:
        """Count one slice of *groups*; *copies* are the target topics by source topic.

        *syncs* are the newest offset syncs by source partition. *groups* is None if commits or
        checkpoints could not be read: the groups that changed in the last measured slice are
        unknown. Removed groups and partitions are dropped.
        """
        if not slices.measured:
            return NO_EVENTS
        if groups is None:
            return SliCount(unknown=len(self._moved_last) * (1 + slices.missed))
        same_copies = copies == self._copies
        good = 0
        moved: set[str] = set()
        uncovered: dict[str, dict[TopicPartition, _Uncovered]] = {}
        for group, offsets in groups.items():
            before = self._groups.get(group)
            pending = self._uncovered.get(group, {})
            if not (same_copies and offsets == before):
                pending = self._find_uncovered(now, offsets, copies, pending, syncs)
                if before is not None and _has_moved(before.commits, offsets.commits, copies):
                    moved.add(group)
                    # One interval passes until the next checkpoint; a lost round is no fault yet.
                    timeout = 3 * self.checkpoint_interval
                    good += not any(now - each.since > timeout for each in pending.values())
            if pending:
                uncovered[group] = pending
        unknown = len(moved) * slices.missed
        self._copies, self._groups, self._uncovered = copies, groups, uncovered
        self._moved_last = frozenset(moved)
        return SliCount(good, len(moved), unknown)

    def _find_uncovered(
        self,
        now: float,
        offsets: GroupOffsets,
        copies: Mapping[str, str],
        known: Mapping[TopicPartition, _Uncovered],
        syncs: Mapping[TopicPartition, SyncLike],
    ) -> dict[TopicPartition, _Uncovered]:
        uncovered: dict[TopicPartition, _Uncovered] = {}
        for partition, commit in offsets.commits.items():
            copy = copies.get(partition.topic)
            if copy is None:
                continue
            checkpoint = offsets.checkpoints.get(TopicPartition(copy, partition.partition))
            covered_to = -1
            if checkpoint is not None:
                sync = syncs.get(partition)
                behind = 0 if sync is None else sync.upstream - commit
                covered_to = checkpoint.upstream + max(self.offset_lag_max, _SPARSITY * behind)
            since, offset = known.get(partition) or (now, commit)
            # A group that was reset to an earlier offset no longer needs the later one covered.
            offset = min(offset, commit)
            if covered_to >= offset:
                since, offset = now, commit
            if covered_to < offset:
                uncovered[partition] = _Uncovered(since, offset)
        return uncovered


def _has_moved(
    before: Mapping[TopicPartition, int],
    commits: Mapping[TopicPartition, int],
    copies: Mapping[str, str],
) -> bool:
    return any(
        before.get(partition, commit) != commit and partition.topic in copies
        for partition, commit in commits.items()
    )
