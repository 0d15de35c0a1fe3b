"""The offset syncs of one source partition, and what follows from them (pure).

The known position is never interpolated, since missing records below it are reported as lost.

A sync (u, d) is a cut if no record below u was copied at or after d, and no other record before d.
So there is no cut in the range that MirrorMaker 2 replays after a crash. Between two syncs (u1, d1)
and (u2, d2) on a target without other writers, the sources of [d1, d2) are

    [u1, u2)                                    if d2 - d1 <= u2 - u1, forward
    within [u2 - (d2 - d1), u1 + (d2 - d1))     else: duplicates or foreign records

since each target offset advances by one source record, except for steps back. Where both sides
advance equally, records between are copied one to one, and any offset there is a cut.

Expired ranges were removed by retention before they were replicated. Gaps from compaction or
transactions count as well: an upper bound in such topics.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from mm2slo_audit.scope.arrival_polls import PartitionTimeline, TimedValue
from mm2slo_core.audit.audit_scope import Cut, Window
from mm2slo_core.offset_translation import SyncRuns

_MAX_POINTS: Final = 20_000
_RUN_POINTS: Final = 4096


class TimedSync(NamedTuple):
    """Source offset *upstream* became target offset *downstream*; written *at* epoch seconds."""

    upstream: int
    downstream: int
    at: float


class SyncHistory:
    """The syncs of a partition in order, without those inside a run of equal distance."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: list[TimedSync] = []

    @property
    def points(self) -> Sequence[TimedSync]:
        """First and last points of runs, oldest first."""
        return self._points

    def add(self, point: TimedSync) -> None:
        """Add the next sync."""
        points = self._points
        if (
            len(points) > 1
            and _is_straight(points[-2], points[-1])
            and _is_straight(points[-1], point)
        ):
            points[-1] = point
            return
        points.append(point)
        if len(points) > _MAX_POINTS:
            # Keep the oldest, which shows where the flow started, and thin out the older half.
            half = _MAX_POINTS // 2
            self._points = [*points[:half:2], *points[half:]]


def _is_straight(one: TimedSync, two: TimedSync) -> bool:
    run = two.upstream - one.upstream
    return run > 0 and run == two.downstream - one.downstream


def select_current_syncs(
    points: Sequence[TimedSync], source_end: int, recreated_between: tuple[float, float] | None
) -> Sequence[TimedSync]:
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


def build_sync_runs(points: Sequence[TimedSync], *, dense: bool) -> SyncRuns:
    """The offset map of these syncs."""
    runs = SyncRuns(dense=dense, max_points=_RUN_POINTS)
    for point in points:
        runs.add(point.upstream, point.downstream)
    return runs


class Commit(NamedTuple):
    """The last source offset that MirrorMaker 2 committed; *at* in epoch seconds."""

    offset: int
    at: float
    earlier: Commit | None = None
    """The one before it, unless MirrorMaker 2 went back since: it then reads another log."""


class KnownPosition(NamedTuple):
    """The position in the current source log."""

    next_offset: int | None
    """The first offset that is not committed; None: unknown. Not from syncs: if a task fails on a
    record, later records of its batch may be copied and synced."""
    reached: int | None
    """The first offset above all commits and syncs; None: unknown."""
    known_from: int
    """The oldest offset that syncs, timeline or commit show the flow at. Missing records below it
    are judged only if the target has removed nothing (`CopyMap.judged_from`)."""
    log_syncs: Sequence[TimedSync]
    """The syncs of the current log."""
    replaced: bool
    """Whether the target may have copies of an earlier log of this name."""


def find_known_position(
    commit: Commit | None,
    points: Sequence[TimedSync],
    *,
    source_end: int,
    recreated_between: tuple[float, float] | None = None,
    oldest_position: int | None = None,
) -> KnownPosition:
    """The position from the newest *commit* and all *points* (syncs, oldest first).

    *oldest_position*: the oldest position of this log in the timeline. Where the flow started is
    unknown below the oldest remaining sync, since the topic of the syncs is compacted. A re-created
    topic (*recreated_between*, see `select_current_syncs`) is followed from its first record.
    """
    log_syncs = select_current_syncs(points, source_end, recreated_between)
    replaced = recreated_between is not None or len(log_syncs) < len(points)
    since = (
        log_syncs[0].at
        if replaced and log_syncs
        else recreated_between[0]
        if recreated_between is not None
        else None
    )
    copied = [point.upstream for point in log_syncs]
    next_offset = None
    if commit is not None and commit.offset < source_end and (since is None or commit.at >= since):
        copied.append(commit.offset)
        next_offset = commit.offset + 1
    reached = max(copied) + 1 if copied else None
    started = [point.upstream for point in log_syncs] or (
        [] if next_offset is None else [next_offset]
    )
    if oldest_position is not None:
        started.append(oldest_position)
    known_from = 0 if recreated_between is not None else min(started, default=0)
    return KnownPosition(next_offset, reached, known_from, log_syncs, replaced)


_MIN_WIDTH: Final = 2_048
"""Records between two cuts. Neighbouring ranges are matched together, since copies that overtake
each other, by a few batches at most, may be beyond a cut."""

_MAX_CUTS: Final = 128
"""Cuts per partition: each record is compared with all of them."""


def find_cuts(
    log_syncs: Sequence[TimedSync],
    *,
    dense: bool,
    read: tuple[int, int],
    target_end: int,
    min_width: int = _MIN_WIDTH,
) -> tuple[Cut, ...]:
    """Cuts of the source range *read* [start, end); the first is at or below its start if possible.

    *log_syncs*: the syncs of the current source log, oldest first. *dense*: each target offset is a
    record of this flow; otherwise the flow has exactly-once and writes no duplicates.
    """
    start, end = read
    width = max(min_width, -((start - end) // _MAX_CUTS))
    kept: list[Cut] = []
    for cut in _find_all_cuts(
        _select_target_log_syncs(log_syncs), (end, target_end), (start, width), dense=dense
    ):
        if cut.upstream <= start:
            kept = [cut]
        elif cut.upstream < end and (not kept or _distance(kept[-1], cut) >= width):
            kept.append(cut)
    return tuple(kept)


def _distance(one: Cut, two: Cut) -> int:
    return min(two.upstream - one.upstream, two.downstream - one.downstream)


def _select_target_log_syncs(log_syncs: Sequence[TimedSync]) -> Sequence[TimedSync]:
    """The syncs of the current target log: its offsets never step back."""
    steps = [at for at, (one, two) in enumerate(pairwise(log_syncs), 1) if _is_new_log(one, two)]
    return log_syncs[steps[-1] :] if steps else log_syncs


def _is_new_log(one: TimedSync, two: TimedSync) -> bool:
    return two.downstream < one.downstream


def _find_all_cuts(
    points: Sequence[TimedSync], ends: tuple[int, int], grid: tuple[int, int], *, dense: bool
) -> Iterator[Cut]:
    """Syncs that are cuts, and in one-to-one ranges the offsets of *grid* (start, width)."""
    if not points:
        return
    spans = [_source_range(one, two, dense=dense) for one, two in pairwise(points)]
    last = _source_range(points[-1], TimedSync(*ends, at=0.0), dense=dense)
    # For each sync: highest source end before it, lowest source start after it.
    reached = list(accumulate((high for _low, high in spans), max, initial=points[0].upstream))
    left = list(accumulate((low for low, _high in reversed((*spans, last))), min))[::-1]
    start, width = grid
    for at, point in enumerate(points):
        if reached[at] <= point.upstream <= left[at]:
            yield Cut(point.upstream, point.downstream)
        if at + 1 < len(points) and dense and _is_one_to_one(point, points[at + 1]):
            first = max(reached[at], start)
            if first <= point.upstream:
                first = point.upstream + width
            until = min(points[at + 1].upstream, left[at + 1] + 1)
            for upstream in range(first, until, width):
                yield Cut(upstream, point.downstream + upstream - point.upstream)


def _is_one_to_one(one: TimedSync, two: TimedSync) -> bool:
    return two.upstream - one.upstream == two.downstream - one.downstream


def _source_range(one: TimedSync, two: TimedSync, *, dense: bool) -> tuple[int, int]:
    """Source offsets [low, high) of the target records between two syncs."""
    run, rise = two.upstream - one.upstream, two.downstream - one.downstream
    if run > 0 and (rise <= run or not dense):
        return one.upstream, two.upstream
    return min(one.upstream, two.upstream - rise), max(two.upstream, one.upstream + rise)


_START_DELAY_SECONDS: Final = 120.0
"""Idle topics are written once a minute, with log starts up to half a minute old."""


class ExpiredRange(NamedTuple):
    """Source offsets [start, end) that were removed before they were copied."""

    start: int
    end: int
    next_copy: int | None
    """Target offset of the copy of record *end*; None: not copied yet."""


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """Offsets of one source partition at the time of the snapshots."""

    at: float
    """Epoch s."""
    log_start: int
    source_end: int
    reached: int | None
    """As in `KnownPosition`."""
    copied_to: int | None = None
    """Source offset reached by the target's end, if it can be interpolated."""


def find_expired_ranges(
    log_syncs: Sequence[TimedSync],
    timeline: PartitionTimeline | None,
    present: PartitionSnapshot,
    *,
    dense: bool,
    position_period: float,
) -> tuple[ExpiredRange, ...]:
    """All known ranges, ascending and disjoint.

    *dense*: each target offset is one record of this flow, so surplus source offsets between two
    syncs were not copied. *position_period* (s): maximum age of a healthy position; a gap between
    log start and position counts after that time.
    """
    found: list[ExpiredRange] = []
    if dense:
        found += _find_gaps_between_syncs(log_syncs, timeline, present)
    if timeline is not None:
        found += _find_gaps_below_log_start(timeline, present, position_period)
    if present.reached is not None:
        copied = max(present.reached, present.copied_to or 0)
        if present.log_start > copied:
            found.append(ExpiredRange(copied, present.log_start, None))
    return tuple(_join_ranges(found))


def _find_gaps_between_syncs(
    log_syncs: Sequence[TimedSync], timeline: PartitionTimeline | None, present: PartitionSnapshot
) -> Iterator[ExpiredRange]:
    """After a gap MirrorMaker 2 writes a sync at once: the gap ends at the first record copied."""
    # PartitionState.update of MirrorMaker 2 is true, whatever offset.lag.max is, if the upstream
    # offset is not the previous one + 1.
    for before, after in pairwise(log_syncs):
        run, rise = after.upstream - before.upstream, after.downstream - before.downstream
        if not 0 < rise < run or present.log_start < after.upstream:
            continue
        start = before.upstream + rise
        known_by = after.at + _START_DELAY_SECONDS
        later = None if timeline is None else _value_at(timeline.starts, known_by)
        if later is not None and later <= start and known_by <= present.at:
            continue  # the records still existed: transaction markers or compaction
        yield ExpiredRange(start, after.upstream, after.downstream)


def _find_gaps_below_log_start(
    timeline: PartitionTimeline, present: PartitionSnapshot, period: float
) -> Iterator[ExpiredRange]:
    moments = sorted({figure.at for figure in (*timeline.starts, *timeline.positions)})
    for at in moments:
        start, position = _value_at(timeline.starts, at), _value_at(timeline.positions, at)
        if start is None or position is None or start <= position:
            continue
        # A stale position advances within its period.
        if at + period <= present.at:
            position = _value_at(timeline.positions, at + period) or position
        else:
            position = max(position, present.reached or 0, present.copied_to or 0)
        if start > position:
            yield ExpiredRange(position, start, None)


def _value_at(figures: Sequence[TimedValue], at: float) -> int | None:
    index = bisect_right(figures, at, key=lambda figure: figure.at) - 1
    return figures[index].value if index >= 0 else None


def _join_ranges(ranges: Iterable[ExpiredRange]) -> Iterator[ExpiredRange]:
    held: ExpiredRange | None = None
    for each in sorted(ranges, key=lambda one: (one.start, one.end)):
        if held is None:
            held = each
        elif each.start <= held.end:
            last = max(held, each, key=lambda one: (one.end, one.next_copy is not None))
            held = ExpiredRange(held.start, last.end, last.next_copy)
        else:
            yield held
            held = each
    if held is not None:
        yield held


def count_arrived_in(
    expired: ExpiredRange, timeline: PartitionTimeline, window: Window, present: PartitionSnapshot
) -> tuple[int, int]:
    """Number of records that arrived within *window*, and number of unknown arrival.

    A record counts if its bracket overlaps the window, so adjoining windows may both count it.
    """
    counted = unknown = 0
    start = expired.start
    for poll in timeline.polls:
        end = min(poll.end, expired.end)
        if end <= start:
            continue
        if poll.earliest is None:
            unknown += end - start
        elif poll.earliest < window.end and poll.latest >= window.start:
            counted += end - start
        start = end
    rest = expired.end - start
    if rest > 0 and timeline.polls:
        since = timeline.polls[-1].latest
        if since < window.end and present.at * 1000 >= window.start:
            counted += rest
    elif rest > 0:
        unknown += rest
    return counted, unknown
