"""Compact size distribution of sampled keys, for a bootstrap over keys.

Keys with equal numbers share a cell without loss. A cell holds totals, so cells of several
outcomes can be added. Distinct sizes are usually few (n records have at most about sqrt(2n)).
Beyond a limit, keys with similar numbers share a cell, and a resample draws their mean.
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
"""Doublings per bucket: numbers in one bucket are within 4.4 % of each other."""
_WIDENINGS: Final = 12
"""After this many widenings all numbers except zero share one bucket: 16 cells."""

_PerKey = tuple[float, ...]


def pool_key_cells(cells: Iterable[KeyCell], limit: int = MAX_CELLS) -> tuple[KeyCell, ...]:
    """Return at most *limit* cells (16 or more) with the same totals, sorted.

    If equal keys alone need more cells, keys whose records, copies, moved and overtaking records
    are each in the same bucket share one. Zero has its own bucket, so the number of keys with an
    event stays exact, as all totals do. Buckets are 16 per doubling, then double in width until
    there are few enough cells.
    """
    exact = _merged(cells, _mean_of_cell)
    found = exact
    for widening in range(_WIDENINGS):
        if len(found) <= limit:
            break
        found = _merged(exact, _bucketed(_FINEST * 2**widening))
    return tuple(sorted(found))


def _merged(cells: Iterable[KeyCell], trait: Callable[[KeyCell], _PerKey]) -> list[KeyCell]:
    groups: defaultdict[_PerKey, list[KeyCell]] = defaultdict(list)
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


def _mean_of_cell(cell: KeyCell) -> _PerKey:
    """Return the mean numbers per key of a cell."""
    totals = (cell.records, cell.copies, cell.moved, cell.overtook)
    return tuple(total / cell.keys for total in totals)


def _bucketed(doublings: float) -> Callable[[KeyCell], _PerKey]:
    def bucket(cell: KeyCell) -> _PerKey:
        return tuple(
            math.floor(math.log2(number) / doublings) if number else -1.0
            for number in _mean_of_cell(cell)
        )

    return bucket
