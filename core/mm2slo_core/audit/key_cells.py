"""The sizes of a sample's keys in few cells: what a bootstrap over keys needs, and no more.

Keys with the same figures share a cell, and nothing is lost. A cell holds totals, so cells of
several outcomes add up. Distinct sizes are few (n records have at most about sqrt(2n) of them), but
nothing forces them to be, so there is a limit; beyond it, and only then, keys whose figures are
close share a cell: a resample then draws their mean.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.unit_outcome import KeyCell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_CELLS: Final = 512
_FINEST: Final = 1 / 16
"""Doublings per bucket: figures of one bucket are within 4.4 % of each other."""
_WIDENINGS: Final = 12
"""After so many every figure but zero is in one bucket: 16 cells."""

_Figures = tuple[float, ...]


def pool_key_cells(cells: Iterable[KeyCell], limit: int = MAX_CELLS) -> tuple[KeyCell, ...]:
    """At most *limit* cells (16 or more) of the same totals, sorted.

    Where like keys alone make more cells than that, keys share one whose records, copies, moved
    and overtaking records are each in the same bucket. Zero has a bucket of its own, so the number
    of keys with an event stays exact, as all totals do. Buckets are 16 per doubling, and twice as
    wide until the cells are few enough.
    """
    exact = _merged(cells, _of_one)
    found = exact
    for widening in range(_WIDENINGS):
        if len(found) <= limit:
            break
        found = _merged(exact, _bucketed(_FINEST * 2**widening))
    return tuple(sorted(found))


def _merged(cells: Iterable[KeyCell], trait: Callable[[KeyCell], _Figures]) -> list[KeyCell]:
    groups: defaultdict[_Figures, list[KeyCell]] = defaultdict(list)
    for cell in cells:
        groups[trait(cell)].append(cell)
    return [
        KeyCell(
            keys=sum(each.keys for each in alike),
            records=sum(each.records for each in alike),
            copies=sum(each.copies for each in alike),
            moved=sum(each.moved for each in alike),
            overtook=sum(each.overtook for each in alike),
        )
        for alike in groups.values()
    ]


def _of_one(cell: KeyCell) -> _Figures:
    """What one key of a cell has; on average, where they are not all alike."""
    totals = (cell.records, cell.copies, cell.moved, cell.overtook)
    return tuple(total / cell.keys for total in totals)


def _bucketed(doublings: float) -> Callable[[KeyCell], _Figures]:
    def buckets(cell: KeyCell) -> _Figures:
        return tuple(
            math.floor(math.log2(figure) / doublings) if figure else -1.0
            for figure in _of_one(cell)
        )

    return buckets
