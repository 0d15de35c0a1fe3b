"""Where the copies of a source partition part, by its offset syncs (pure).

A sync (u, d) is a cut when nothing below u was copied at or after d, and nothing else before d. So
it is none while MirrorMaker 2 copies again what it had copied before: from where it went back to,
to where it had been, everything is one stretch. Between two syncs (u1, d1) and (u2, d2) on a target
that nobody else writes, the sources of [d1, d2) are

    [u1, u2)                                      where d2 - d1 <= u2 - u1, forward
    within [u2 - (d2 - d1), u1 + (d2 - d1))       else: something is there twice, or is foreign

since each target offset takes one source record further, but for the steps back. Where both sides
go on by the same number, all between is copied one by one, and any offset of it is a cut.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.sync_history import SyncPoint
from mm2slo_core.audit.audit_scope import Cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NARROWEST: Final = 2_048
"""Records between two cuts. Neighbouring stretches help each other out: copies that overtake each
other, of a few batches at most, may lie beyond one cut."""
_MOST: Final = 128
"""Cuts of a partition: each record is compared with all of them."""


def cuts(
    epoch: Sequence[SyncPoint],
    *,
    dense: bool,
    read: tuple[int, int],
    target_end: int,
    narrowest: int = _NARROWEST,
) -> tuple[Cut, ...]:
    """Cuts of what is read, [start, end) of the source; the first lies at or below its start.

    If there is one there: then nothing before it on the target is of what is read. *epoch* are the
    syncs of the source's present log, oldest first. *dense*: each target offset is a record of
    this flow; a flow that is not, is one with exactly-once, and writes nothing twice.
    """
    start, end = read
    width = max(narrowest, -((start - end) // _MOST))
    kept: list[Cut] = []
    for cut in _clean(_since_created(epoch), (end, target_end), (start, width), dense=dense):
        if cut.upstream <= start:
            kept = [cut]
        elif cut.upstream < end and (not kept or _distance(kept[-1], cut) >= width):
            kept.append(cut)
    return tuple(kept)


def _distance(one: Cut, two: Cut) -> int:
    return min(two.upstream - one.upstream, two.downstream - one.downstream)


def _since_created(epoch: Sequence[SyncPoint]) -> Sequence[SyncPoint]:
    """The syncs of the target's present log: its offsets never step back."""
    steps = [at for at, (one, two) in enumerate(pairwise(epoch), 1) if _is_new_log(one, two)]
    return epoch[steps[-1] :] if steps else epoch


def _is_new_log(one: SyncPoint, two: SyncPoint) -> bool:
    return two.downstream < one.downstream


def _clean(
    points: Sequence[SyncPoint], ends: tuple[int, int], grid: tuple[int, int], *, dense: bool
) -> Iterator[Cut]:
    """Syncs that are cuts, and of what is copied one by one those of *grid* (start, width)."""
    if not points:
        return
    spans = [_sources(one, two, dense=dense) for one, two in pairwise(points)]
    last = _sources(points[-1], SyncPoint(*ends, at=0.0), dense=dense)
    # Of all before each sync the end of their sources, of all after it their start.
    reached = list(accumulate((high for _low, high in spans), max, initial=points[0].upstream))
    left = list(accumulate((low for low, _high in reversed((*spans, last))), min))[::-1]
    start, width = grid
    for at, point in enumerate(points):
        if reached[at] <= point.upstream <= left[at]:
            yield Cut(point.upstream, point.downstream)
        if at + 1 < len(points) and dense and _one_by_one(point, points[at + 1]):
            first = max(reached[at], start)
            if first <= point.upstream:
                first = point.upstream + width
            until = min(points[at + 1].upstream, left[at + 1] + 1)
            for upstream in range(first, until, width):
                yield Cut(upstream, point.downstream + upstream - point.upstream)


def _one_by_one(one: SyncPoint, two: SyncPoint) -> bool:
    return two.upstream - one.upstream == two.downstream - one.downstream


def _sources(one: SyncPoint, two: SyncPoint, *, dense: bool) -> tuple[int, int]:
    """Which source offsets [low, high) the target records between two syncs are of."""
    run, rise = two.upstream - one.upstream, two.downstream - one.downstream
    if run > 0 and (rise <= run or not dense):
        return one.upstream, two.upstream
    return min(one.upstream, two.upstream - rise), max(two.upstream, one.upstream + rise)
