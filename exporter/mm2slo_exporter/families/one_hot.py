"""State metrics: one series per state of a closed list, 1 for current states, else 0."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_exporter.families.flow_view import Series
    from mm2slo_exporter.families.label_cache import Labels


def one_hot(labels: Labels, states: Iterable[str], current: Iterable[str]) -> list[Series]:
    """One series per state; several states may be current.

    Current states that are not on the list are published too.
    """
    active = {str(state) for state in current}
    known = [str(state) for state in states]
    listed = [*known, *sorted(active.difference(known))]
    return [((*labels, state), int(state in active)) for state in listed]


def count_by_kind(labels: Labels, kinds: Iterable[str], found: Iterable[str]) -> list[Series]:
    """The number of *found* per kind; each kind has a series."""
    counts = Counter(found)
    return [((*labels, str(kind)), counts[kind]) for kind in kinds]
