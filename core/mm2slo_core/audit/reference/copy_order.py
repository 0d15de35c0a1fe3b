"""Out-of-order copies: in source order, each copy that precedes its predecessor's copy."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from mm2slo_core.audit.reference.record_groups import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mm2slo_core.audit.reference.record_groups import Pair


def descents(matched: Iterable[Pair], lane: Callable[[Pair], tuple[int, ...]]) -> list[Pair]:
    """Return the pairs whose copy precedes that of their predecessor in the same *lane*."""
    lanes = sorted(matched, key=lambda pair: (lane(pair), place(pair[0])))
    return [
        later
        for _, members in groupby(lanes, key=lane)
        for earlier, later in pairwise(members)
        if later[1].offset < earlier[1].offset
    ]
