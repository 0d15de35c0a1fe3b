"""Offsets on both sides of a flow: positions, offset translation, bounds between syncs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Protocol


class PositionQuality(StrEnum):
    """What a position is based on; a closed list, used as a metric label.

    Only `live` is interpolated. The others, except `bounded` and `filtered`, use the larger of
    MirrorMaker 2's committed offset and newest offset sync. These two need earlier positions, and
    `estimate_position` does not return them.
    """

    LIVE = "live"
    """Interpolated from the newest sync and the target's end."""
    COMMITTED = "committed"
    """The committed offset: no sync is known, or the commit is ahead of the interpolation."""
    STALE = "stale"
    """The target's end is unknown (unreachable): the actual position may be further."""
    NOT_STARTED = "not_started"
    """No commit and no sync: replication starts at the log start."""
    FOREIGN_WRITER = "foreign_writer"
    """The target has more records than this flow wrote: other producers, or retried duplicates."""
    SHARED_TARGET = "shared_target"
    """Several flows write to the same target topic: interpolation is not possible."""
    EXACTLY_ONCE = "exactly_once"
    """Transaction markers use target offsets: interpolation is not possible."""
    TARGET_RESET = "target_reset"
    """The target ends before the newest sync: it was truncated or re-created."""
    SOURCE_RESET = "source_reset"
    """The source ends before the replicated offset: it was truncated or re-created."""
    RENAMED_COPY = "renamed_copy"
    """A transform gives the copy a name that is not known: its end cannot be read."""
    FILTERED = "filtered"
    """The end of the partition: records before it were not replicated, and a transform that drops
    records explains it (`DroppedTail`)."""
    BOUNDED = "bounded"
    """The source was truncated or re-created, and no newer commit or sync shows where MirrorMaker 2
    continues. The position is the highest possible one, so lag is a lower bound."""


_LIVE: Final = PositionQuality.LIVE
"""Until Python 3.12, each access to a member of an enum takes as long as a call."""


class SyncLike(Protocol):
    """An offset sync: the offsets of one source record and its copy."""

    @property
    def upstream(self) -> int:
        """Offset on the source."""

    @property
    def downstream(self) -> int:
        """Offset on the target."""


class Position(NamedTuple):
    """*next_offset* is the first source offset that is not replicated."""

    next_offset: int
    quality: PositionQuality

    def moved_to(self, next_offset: int) -> Position:
        """The same position at another offset."""
        same = next_offset == self.next_offset
        return self if same else Position(next_offset, self.quality)


def estimate_position(
    *,
    committed: int | None,
    sync: SyncLike | None,
    target_end: int | None,
    high_watermark: int,
    log_start: int,
    shared_target: bool = False,
    exactly_once: bool = False,
    copy_known: bool = True,
) -> Position:
    """Estimate the position of one source partition.

    *committed* is the offset of the last acknowledged source record (None: no commit), *sync*
    the newest offset sync, *target_end* the end offset of the remote partition (None: unknown),
    *high_watermark* and *log_start* are the source's; pass the last stable offset as
    *high_watermark* for `read_committed` flows. Read them in this order, so that lag is never too
    low: sync and commit, then target end, then source end.

    Interpolation: by the newest offset sync (u, d), source record u is target record d. From there
    to the target's end E, each target record is one source record, because MirrorMaker 2 writes a
    new sync whenever source offsets are not consecutive (Kafka's `OffsetSyncWriter`). The last
    replicated source offset is u + (E - 1 - d).

    Invariants:
    A. The position is beyond the commit and beyond the sync: what is acknowledged is replicated.
    B. It is not beyond the source's end.
    C. It is never clamped: if interpolation contradicts A or B, the larger of commit and sync is
       used, and the quality has the reason.
    D. It is the log start if no record of the current log is known to be replicated (`not_started`,
       `source_reset`): MirrorMaker 2 starts there (`auto.offset.reset=earliest`). Otherwise it may
       be below the log start: the records in between were lost.
    """
    last = committed
    if sync is not None and (last is None or sync.upstream > last):
        last = sync.upstream
    if last is None:
        return Position(log_start, PositionQuality.NOT_STARTED)
    known = last + 1
    # The commit alone may be a flush interval old (60 s by default): its offset is a lower bound
    # that only the target's end makes current.
    if known > high_watermark:
        return Position(log_start, PositionQuality.SOURCE_RESET)
    if target_end is None:
        quality = PositionQuality.STALE if copy_known else PositionQuality.RENAMED_COPY
        return Position(known, quality)
    if sync is None:
        return Position(known, PositionQuality.COMMITTED)
    interpolated = sync.upstream + target_end - sync.downstream
    # The order of the checks is part of the result: a target that ends before the sync says nothing
    # about its later records, whoever writes them.
    if target_end <= sync.downstream:
        quality = PositionQuality.TARGET_RESET
    elif shared_target:
        quality = PositionQuality.SHARED_TARGET
    elif exactly_once:
        quality = PositionQuality.EXACTLY_ONCE
    elif interpolated > high_watermark:
        quality = PositionQuality.FOREIGN_WRITER
    elif interpolated < known:
        quality = PositionQuality.COMMITTED
    else:
        return Position(interpolated, _LIVE)
    return Position(known, quality)


_KEEPS_HISTORY = (3, 7, 1)  # KAFKA-15905


def keeps_offset_syncs(version: str) -> bool:
    """Whether MirrorMaker 2 of this Kafka version uses older offset syncs after a restart.

    A version without a patch number is its newest patch.
    """
    stated = tuple(map(int, version.split(".")))
    return stated >= _KEEPS_HISTORY[: len(stated)]


class Untranslated(StrEnum):
    """Why MirrorMaker 2 does not translate an offset (Kafka's `OffsetSyncStore`)."""

    NO_SYNC = "no_sync"
    """No sync of the partition is known."""
    BEHIND_OLDEST_SYNC = "behind_oldest_sync"
    """The offset is below all syncs that are kept."""


_ONE_EPOCH = (0,)


class Bounds(NamedTuple):
    """*lower* <= the actual number <= *upper*; *upper* None: unbounded."""

    lower: int
    upper: int | None


class Failover(NamedTuple):
    """Where on the target a group should resume, and what it reads again from where it would.

    `redelivery` counts the target records from there on that are copies of source records below
    the group's commit on the source; duplicates count twice.
    """

    resume: Bounds
    redelivery: Bounds


class Head(NamedTuple):
    """The next source offset to replicate, and the target end offset it will be written to."""

    next_offset: int
    """The result of `estimate_position` for that end of the target, if it is exact; else the end of
    the source, which was read later: no record from there on is on the target."""
    target_end: int
    is_exact: bool = True
    """False: not all records below *next_offset* may be on the target, and after the newest sync
    there may be records of other producers or transaction markers."""


class SyncRuns:
    """A compact map from all offset syncs of one partition.

    An offset sync (u, d) says: source record u is target record d. Between two syncs the map is
    bounded by order, and more narrowly if the target is *dense* (each of its offsets holds one
    record of this flow, each record once): of r source offsets at most r records were replicated.
    *dense* is False for flows with exactly-once (markers on the target) and for shared targets.

        u1 < g < u2, the target position p of the first record at or after g:
            d1 + 1 <= p <= d2                                  by order
            d2 - (u2 - g) <= p <= d1 + (g - u1)                dense: exact when d2 - d1 = u2 - u1

    Gaps on the source (compaction, transaction markers, aborted records) only make d2 - d1 smaller
    than u2 - u1. If it is larger, a dense target has received records twice.

    An *epoch* is a range of the target in which source offsets ascend. A new one starts where they
    go back: MirrorMaker 2 resumed from an older commit after a crash and replays a block, or the
    source was re-created. Each task starts with a sync, so the step back is visible there; it is
    *hidden* if that sync is ahead of the previous one, and only d2 - d1 > u2 - u1 reveals it.

    Invariants:
    A. Downstream offsets ascend over all points, upstream offsets within an epoch.
    B. Bounds enclose the true offset; a bound that nothing proves is 0 or None.
    C. Leaving points out (inside a run of equal distance, or to keep at most *max_points*) widens
       bounds and never makes them wrong: the ends of epochs stay.
    """

    __slots__ = ("_dense", "_downs", "_epochs", "_max_points", "_straight", "_ups")

    def __init__(self, *, dense: bool = True, max_points: int = 256) -> None:
        self._dense = dense
        self._max_points = max(8, max_points)
        # The upstream and downstream offset of each point; the index of each epoch's first point.
        self._ups = array("q")
        self._downs = array("q")
        self._epochs: tuple[int, ...] = _ONE_EPOCH
        self._straight = False

    def __len__(self) -> int:
        return len(self._ups)

    def add(self, upstream: int, downstream: int) -> None:
        """Add the next sync, in the order of the offset syncs topic.

        A downstream offset that goes back means that the target was truncated or re-created: all
        points are dropped.
        """
        ups = self._ups
        if not ups:
            self._append(upstream, downstream)
            return
        run, rise = upstream - ups[-1], downstream - self._downs[-1]
        if run == rise:
            if self._straight and run > 0:
                # C: the third point of a line says nothing that its neighbours do not.
                ups[-1], self._downs[-1] = upstream, downstream
                return
            if run == 0:
                return
        if rise <= 0:
            self._restart()  # keeps A
        elif run <= 0 or (self._dense and rise > run):
            self._epochs += (len(ups),)
        self._append(upstream, downstream)
        self._straight = run == rise and run > 0
        if len(self._ups) > self._max_points:
            self._thin()

    def assume_sparse(self) -> None:
        """Treat the target as not dense, for what was added before, too.

        Steps back that only the target's offsets had revealed may have been markers.
        """
        if self._dense:
            self._dense = False
            ups = self._ups
            self._epochs = tuple(k for k in self._epochs if k == 0 or ups[k] <= ups[k - 1])

    def target_bounds(self, upstream_offset: int, head: Head | None = None) -> Bounds | None:
        """Return where on the target a group with commit *upstream_offset* should resume.

        That is the first record at or after *upstream_offset* in the newest epoch that starts at
        or before that offset: from there no record is missing, and the fewest are read again (if
        no record is between the offset and a later epoch's first, that one is as good).
        None: no sync is known. Before the oldest known sync the lower bound is 0; the target's log
        start is a better one.
        """
        if not self._ups:
            return None
        for epoch in reversed(range(len(self._epochs))):
            if self._ups[self._epochs[epoch]] <= upstream_offset:
                return self._position_in(epoch, upstream_offset, head)
        return Bounds(0, self._downs[0])

    def failover(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Failover | None:
        """Return what a group that resumes at *downstream_offset* would skip or read again.

        *upstream_offset* is the group's commit on the source. If the target is not dense, counts
        offsets up to the newest sync, including markers. None: no sync is known.
        """
        if not self._ups:
            return None
        # Records before the oldest known sync may be copies of anything.
        resume = Bounds(0, self._downs[0])
        lower = 0
        upper: int | None = max(0, self._downs[0] - downstream_offset)
        following = upstream_offset - self._ups[-1]
        is_bounded = following > 0 and (head is None or not head.is_exact)
        for epoch, first_point in enumerate(self._epochs):
            position = self._position_in(epoch, upstream_offset, head)
            if self._ups[first_point] <= upstream_offset:
                resume = position
            start = max(self._downs[first_point], downstream_offset)
            if is_bounded and epoch == len(self._epochs) - 1:
                # After the newest sync, each source offset has at most one copy.
                after = self._downs[-1] + 1
                position = Bounds(after, max(after, start) + following - 1)
            lower += max(0, position.lower - start)
            if position.upper is None or upper is None:
                upper = None
            else:
                upper += max(0, position.upper - start)
        return Failover(resume, Bounds(lower, upper))

    def reaches(self, upstream_offset: int) -> bool:
        """Return whether MirrorMaker 2 can translate *upstream_offset*: a sync at or below it.

        Kafka's `OffsetSyncStore` keeps 64 syncs of a partition at growing distances and never drops
        the oldest one (its invariant D), but drops all when the source offsets go back.
        """
        if not self._ups:
            return False
        start = 0
        for epoch in self._epochs[1:]:
            if self._ups[epoch] < self._ups[epoch - 1]:
                start = epoch
        return self._ups[start] <= upstream_offset

    def upstream_bounds(self, downstream_offset: int) -> Bounds | None:
        """Return the source offset of the target record at *downstream_offset*.

        None: the target offset is before the oldest known sync.
        """
        at = bisect_right(self._downs, downstream_offset) - 1
        if at < 0:
            return None
        up, ahead = self._ups[at], downstream_offset - self._downs[at]
        if ahead == 0:
            return Bounds(up, up)
        following = at + 1
        last = following == len(self._ups)
        if last or following in self._epochs:
            hidden = not last and self._ups[following] > up
            return Bounds(up + ahead if self._dense and not hidden else up, None)
        next_up, remaining = self._ups[following], self._downs[following] - downstream_offset
        if self._dense:
            return Bounds(up + ahead, next_up - remaining)
        return Bounds(up, next_up)

    def points(self) -> Iterator[tuple[int, int]]:
        """Return the corner points, oldest first."""
        return zip(self._ups, self._downs, strict=True)

    def _span(self, epoch: int) -> tuple[int, int]:
        following = epoch + 1
        end = self._epochs[following] if following < len(self._epochs) else len(self._ups)
        return self._epochs[epoch], end

    def _position_in(self, epoch: int, upstream: int, head: Head | None) -> Bounds:
        """Return where in *epoch* the first record at or after *upstream* is, else its end."""
        ups, downs = self._ups, self._downs
        start, end = self._span(epoch)
        at = bisect_right(ups, upstream, start, end) - 1
        if at < start:
            return Bounds(downs[start], downs[start])
        if ups[at] == upstream:
            return Bounds(downs[at], downs[at])
        if at + 1 < end:
            return self._between(at, upstream, ups[at + 1], downs[at + 1])
        if end < len(ups):
            return self._before_step_back(at, upstream, end)
        return self._beyond(at, upstream, head)

    def _between(self, at: int, upstream: int, next_up: int, next_down: int) -> Bounds:
        up, down = self._ups[at], self._downs[at]
        lower, upper = down + 1, next_down
        if self._dense and next_down - down <= next_up - up:
            lower = max(lower, next_down - (next_up - upstream))
            upper = min(upper, down + upstream - up)
        return Bounds(lower, upper)

    def _before_step_back(self, at: int, upstream: int, following: int) -> Bounds:
        up, down, epoch_end = self._ups[at], self._downs[at], self._downs[following]
        # A hidden step back may also be a few duplicates: only order bounds the position.
        hidden = self._ups[following] > up
        reach = down + upstream - up if self._dense and not hidden else epoch_end
        return Bounds(down + 1, min(epoch_end, reach))

    def _beyond(self, at: int, upstream: int, head: Head | None) -> Bounds:
        up, down = self._ups[at], self._downs[at]
        if head is not None and head.next_offset > up and head.target_end > down:
            if upstream >= head.next_offset:
                return Bounds(head.target_end, head.target_end)
            if not head.is_exact:
                return Bounds(down + 1, head.target_end)
            return self._between(at, upstream, head.next_offset, head.target_end)
        return Bounds(down + 1, down + upstream - up if self._dense else None)

    def _append(self, upstream: int, downstream: int) -> None:
        self._ups.append(upstream)
        self._downs.append(downstream)

    def _restart(self) -> None:
        self._ups, self._downs, self._epochs = array("q"), array("q"), _ONE_EPOCH

    def _thin(self) -> None:
        count = len(self._ups)
        keep = self._thinned(count)
        if count - len(keep) < count // 8:
            # No more points can be left out in between: drop the oldest.
            keep = keep[len(keep) // 4 :]
        starts = set(self._epochs)
        self._ups = array("q", (self._ups[at] for at in keep))
        self._downs = array("q", (self._downs[at] for at in keep))
        self._epochs = (0, *(new for new, old in enumerate(keep) if new and old in starts))

    def _thinned(self, count: int) -> list[int]:
        """Drop every other point of the older half, except the ends of epochs (C)."""
        ends = {at for start in self._epochs for at in (start - 1, start)}
        keep = [0]
        for at in range(1, count):
            droppable = at < count // 2 and at not in ends and at - 1 == keep[-1]
            if not droppable:
                keep.append(at)
        return keep


class TransactionalCommits:
    """Follows the commits of one connector in the partitions of Connect's offsets topic.

    With exactly-once support each transaction ends with a marker, which uses the offset after the
    commits (KIP-618, KIP-98). Compaction leaves such gaps too, but not at the end of a partition:
    there only a marker follows the newest record. Without transactions, commits of one source
    partition are written one after another with nothing but other records between them: those of
    the other connectors.
    """

    __slots__ = ("_newest", "_newest_at", "_runs", "found")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all commits, of a topic that is read from its start again."""
        self.found: bool | None = None
        """Whether the newest commits are transactional; None as long as nothing shows it."""
        self._runs: dict[int, tuple[int, set[Hashable]]] = {}
        self._newest: int | None = None
        self._newest_at = 0.0

    def add_record(self, partition: int, offset: int) -> None:
        """Add a record of any connector; if it is a commit of this one, call `add_commit` next."""
        last, run = self._runs.get(partition, (-1, set()))
        self._runs[partition] = (offset, run if last == offset - 1 else set())

    def add_commit(self, partition: int, at: float, committed: Hashable) -> None:
        """Note that the newest record is a commit of the source partition *committed*."""
        _, run = self._runs[partition]
        if committed in run:
            self.found = False
            run.clear()
        run.add(committed)
        if at >= self._newest_at:
            self._newest, self._newest_at = partition, at

    def read_up_to(self, positions: Mapping[int, int | None]) -> None:
        """State up to which offset (exclusive) each partition was read."""
        if self._newest is None:
            return
        last, _ = self._runs[self._newest]
        if (positions.get(self._newest) or 0) > last + 1:
            self.found = True
