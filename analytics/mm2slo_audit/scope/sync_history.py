"""The offset syncs of one source partition, as far as they say what was copied (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.flow_offsets import SyncRuns

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_POINTS: Final = 20_000
_RUN_POINTS: Final = 4096


class SyncPoint(NamedTuple):
    """Source record *upstream* is target record *downstream*; written at *at*, epoch seconds."""

    upstream: int
    downstream: int
    at: float


class SyncHistory:
    """All syncs of a partition in their order, without those inside a run of equal distance."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: list[SyncPoint] = []

    @property
    def points(self) -> Sequence[SyncPoint]:
        """First, last and corner points, oldest first."""
        return self._points

    def add(self, point: SyncPoint) -> None:
        """Take the next sync of the topic."""
        points = self._points
        if len(points) > 1 and _straight(points[-2], points[-1]) and _straight(points[-1], point):
            points[-1] = point
            return
        points.append(point)
        if len(points) > _MOST_POINTS:
            # Distances add up over what is left out, and the oldest says where the flow started.
            half = _MOST_POINTS // 2
            self._points = [*points[:half:2], *points[half:]]


def _straight(one: SyncPoint, two: SyncPoint) -> bool:
    run = two.upstream - one.upstream
    return run > 0 and run == two.downstream - one.downstream


def select_current_syncs(
    points: Sequence[SyncPoint], source_end: int, born: tuple[float, float] | None
) -> Sequence[SyncPoint]:
    """The syncs that are about the source's log as it is now.

    A step back of the upstream offset is a replay after a crash, and no new epoch, unless the
    source's log was replaced: the offsets before it lie beyond the log's end. *born* is when the
    topic got its present id, by the timeline: after the first and not after the second moment.
    Syncs that lie beyond the end with no step back after them are all of an earlier log.
    """
    start, highest, found = 0, -1, born is None
    for index, point in enumerate(points):
        stepped_back = index > 0 and point.upstream < points[index - 1].upstream
        if stepped_back and highest >= source_end:
            start, highest = index, -1
        if born is not None and not found and point.at > born[0]:
            found = stepped_back or point.at >= born[1]
            if found:
                start, highest = index, -1
        highest = max(highest, point.upstream)
    return points[start:] if found and highest < source_end else ()


def sync_runs(points: Sequence[SyncPoint], *, dense: bool) -> SyncRuns:
    """The map between both sides by these syncs."""
    runs = SyncRuns(dense=dense, max_points=_RUN_POINTS)
    for point in points:
        runs.add(point.upstream, point.downstream)
    return runs
