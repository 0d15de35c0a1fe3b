"""A compact map between source and target offsets of one partition, from all offset syncs.

An offset sync (u, d) says: source record u is target record d. Between two syncs the map is
bounded by order, and more narrowly if the target is *dense* (each of its offsets holds one record
of this flow, each record once): of r source offsets at most r records were replicated.

    u1 < g < u2, the target position p of the first record at or after g:
        d1 + 1 <= p <= d2                                  by order
        d2 - (u2 - g) <= p <= d1 + (g - u1)                dense: exact when d2 - d1 = u2 - u1

Gaps on the source (compaction, transaction markers, aborted records) only make d2 - d1 smaller
than u2 - u1. If it is larger, a dense target has received records twice.

An *epoch* is a range of the target in which source offsets ascend. A new one starts where they go
back: MirrorMaker 2 resumed from an older commit after a crash and replays a block, or the source
was re-created. Each task starts with a sync, so the step back is visible there; it is *hidden* if
that sync is ahead of the previous one, and only d2 - d1 > u2 - u1 reveals it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_ONE_EPOCH = (0,)


class Bounds(NamedTuple):
    """*lower* <= the actual number <= *upper*; *upper* None: unbounded."""

    lower: int
    upper: int | None

    @property
    def exact(self) -> bool:
        return self.lower == self.upper


class Failover(NamedTuple):
    """Where on the target a group should resume, and what it reads again from where it would.

    `redelivery` counts the target records from there on that are copies of source records below
    the group's commit on the source; duplicates count twice.
    """

    resume: Bounds
    redelivery: Bounds


class Head(NamedTuple):
    """The next source offset to replicate, and the target end offset it will be written to.

    The result of `estimate_position`, with the target end that it was estimated from.
    """

    next_offset: int
    target_end: int


class SyncRuns:
    """The corner points of the map; syncs inside a run of equal distance are redundant.

    *dense* is False for flows with exactly-once (markers on the target) and for shared targets.
    At most *max_points* are kept; beyond this the older half is thinned and finally dropped, which
    widens bounds and never makes them wrong.
    """

    __slots__ = ("_dense", "_downs", "_epochs", "_max_points", "_straight", "_ups")

    def __init__(self, *, dense: bool = True, max_points: int = 256) -> None:
        self._dense = dense
        self._max_points = max(8, max_points)
        # The upstream and downstream offset of each point. Downstream offsets ascend throughout,
        # upstream offsets within an epoch; _epochs has the index of each epoch's first point.
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
                ups[-1], self._downs[-1] = upstream, downstream
                return
            if run == 0:
                return
        if rise <= 0:
            self._restart()
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
        offsets, including markers. None: no sync is known.
        """
        if not self._ups:
            return None
        # Records before the oldest known sync may be copies of anything.
        resume = Bounds(0, self._downs[0])
        lower = 0
        upper: int | None = max(0, self._downs[0] - downstream_offset)
        for epoch, first_point in enumerate(self._epochs):
            position = self._position_in(epoch, upstream_offset, head)
            if self._ups[first_point] <= upstream_offset:
                resume = position
            start = max(self._downs[first_point], downstream_offset)
            lower += max(0, position.lower - start)
            if position.upper is None or upper is None:
                upper = None
            else:
                upper += max(0, position.upper - start)
        return Failover(resume, Bounds(lower, upper))

    def reaches(self, upstream_offset: int) -> bool:
        """Return whether MirrorMaker 2 can translate *upstream_offset*: a sync at or below it.

        Syncs before the source offsets last went back do not count: `OffsetSyncStore` drops them.
        It also thins its syncs, but never drops the oldest.
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
        """Drop every other point of the older half, except the ends of epochs."""
        ends = {at for start in self._epochs for at in (start - 1, start)}
        keep = [0]
        for at in range(1, count):
            droppable = at < count // 2 and at not in ends and at - 1 == keep[-1]
            if not droppable:
                keep.append(at)
        return keep
