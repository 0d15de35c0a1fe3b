"""Cuts that divide a source partition and its copies, from offset syncs (pure).

A sync (u, d) is a cut if no record below u was copied at or after d, and no other record before d.
So there is no cut in the range that MirrorMaker 2 replays after a crash. Between two syncs (u1, d1)
and (u2, d2) on a target without other writers, the sources of [d1, d2) are

    [u1, u2)                                    if d2 - d1 <= u2 - u1, forward
        within [u2 - (d2 - d1), u1 + (d2 - d1))     else: duplicates or foreign records

    since each target offset advances by one source record, except for steps back. Where both sides
    advance equally, records between are copied one to one, and any offset there is a cut.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.sync_history import SyncPoint
from mm2slo_core.audit.audit_scope import Cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MIN_WIDTH: Final = 2_048
"""Records between two cuts. Neighbouring ranges are matched together, since copies that overtake
each other, by a few batches at most, may be beyond a cut."""
_MAX_CUTS: Final = 128
"""Cuts per partition: each record is compared with all of them."""


def find_cuts(
    log_syncs: Sequence[SyncPoint],
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
    for cut in _find_clean(
        _since_created(log_syncs), (end, target_end), (start, width), dense=dense
    ):
        if cut.upstream <= start:
            kept = [cut]
        elif cut.upstream < end and (not kept or _distance(kept[-1], cut) >= width):
            kept.append(cut)
    return tuple(kept)


def _distance(one: Cut, two: Cut) -> int:
    return min(two.upstream - one.upstream, two.downstream - one.downstream)


def _since_created(log_syncs: Sequence[SyncPoint]) -> Sequence[SyncPoint]:
    """The syncs of the current target log: its offsets never step back."""
    steps = [at for at, (one, two) in enumerate(pairwise(log_syncs), 1) if _is_new_log(one, two)]
    return log_syncs[steps[-1] :] if steps else log_syncs


def _is_new_log(one: SyncPoint, two: SyncPoint) -> bool:
    return two.downstream < one.downstream


def _find_clean(
    points: Sequence[SyncPoint], ends: tuple[int, int], grid: tuple[int, int], *, dense: bool
) -> Iterator[Cut]:
    """Syncs that are cuts, and in one-to-one ranges the offsets of *grid* (start, width)."""
    if not points:
        return
    spans = [_source_range(one, two, dense=dense) for one, two in pairwise(points)]
    last = _source_range(points[-1], SyncPoint(*ends, at=0.0), dense=dense)
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


def _is_one_to_one(one: SyncPoint, two: SyncPoint) -> bool:
    return two.upstream - one.upstream == two.downstream - one.downstream


def _source_range(one: SyncPoint, two: SyncPoint, *, dense: bool) -> tuple[int, int]:
    """Source offsets [low, high) of the target records between two syncs."""
    run, rise = two.upstream - one.upstream, two.downstream - one.downstream
    if run > 0 and (rise <= run or not dense):
        return one.upstream, two.upstream
    return min(one.upstream, two.upstream - rise), max(two.upstream, one.upstream + rise)
