"""The offset syncs of one source partition (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.flow_offsets import SyncRuns

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_POINTS: Final = 20_000
_RUN_POINTS: Final = 4096


class SyncPoint(NamedTuple):
    """Source offset *upstream* became target offset *downstream*; written *at* epoch seconds."""

    upstream: int
    downstream: int
    at: float


class SyncHistory:
    """The syncs of a partition in order, without those inside a run of equal distance."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: list[SyncPoint] = []

    @property
    def points(self) -> Sequence[SyncPoint]:
        """First and last points of runs, oldest first."""
        return self._points

    def add(self, point: SyncPoint) -> None:
        """Add the next sync."""
        points = self._points
        if len(points) > 1 and _straight(points[-2], points[-1]) and _straight(points[-1], point):
            points[-1] = point
            return
        points.append(point)
        if len(points) > _MAX_POINTS:
            # Keep the oldest, which shows where the flow started, and thin out the older half.
            half = _MAX_POINTS // 2
            self._points = [*points[:half:2], *points[half:]]


def _straight(one: SyncPoint, two: SyncPoint) -> bool:
    run = two.upstream - one.upstream
    return run > 0 and run == two.downstream - one.downstream


def select_current_syncs(
    points: Sequence[SyncPoint], source_end: int, recreated_between: tuple[float, float] | None
) -> Sequence[SyncPoint]:
    """The syncs of the current source log.

    A step back of the upstream offset is a replay after a crash, unless the log was replaced: then
    earlier offsets are beyond the log's end. *recreated_between*: the topic got its current id
    between these two times, by the timeline. If syncs beyond the end have no step back after them,
    all are of an earlier log.
    """
    start, highest, found = 0, -1, recreated_between is None
    for index, point in enumerate(points):
        stepped_back = index > 0 and point.upstream < points[index - 1].upstream
        if stepped_back and highest >= source_end:
            start, highest = index, -1
        if recreated_between is not None and not found and point.at > recreated_between[0]:
            found = stepped_back or point.at >= recreated_between[1]
            if found:
                start, highest = index, -1
        highest = max(highest, point.upstream)
    return points[start:] if found and highest < source_end else ()


def build_sync_runs(points: Sequence[SyncPoint], *, dense: bool) -> SyncRuns:
    """The offset map of these syncs."""
    runs = SyncRuns(dense=dense, max_points=_RUN_POINTS)
    for point in points:
        runs.add(point.upstream, point.downstream)
    return runs
