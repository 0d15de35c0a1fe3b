"""Out-of-order copies: each copy that precedes the copy of an earlier source record."""

from __future__ import annotations

from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from mm2slo_core.audit.reference.record_groups import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mm2slo_core.audit.reference.record_groups import Pair


def descents(matched: Iterable[Pair], lane: Callable[[Pair], tuple[int, ...]]) -> list[Pair]:
    """Return the pairs whose copy precedes that of an earlier one in the same *lane*."""
    lanes = sorted(matched, key=lambda pair: (lane(pair), place(pair[0])))
    found: list[Pair] = []
    for _, members in groupby(lanes, key=lane):
        pairs = list(members)
        furthest = accumulate((copy.offset for _, copy in pairs), max)
        found += [
            pair for pair, offset in zip(pairs, furthest, strict=True) if pair[1].offset < offset
        ]
    return found
