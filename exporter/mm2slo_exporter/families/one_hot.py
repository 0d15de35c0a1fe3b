"""State metrics: one series per state of a closed list, 1 for those in force, else 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_exporter.families.labels import Labels
    from mm2slo_exporter.families.view import Series


def one_hot(labels: Labels, states: Iterable[str], current: Iterable[str]) -> list[Series]:
    """Series of *states*, by their value; several may be in force at once.

    A current state that is not on the list is published all the same.
    """
    in_force = {str(state) for state in current}
    known = [str(state) for state in states]
    listed = [*known, *sorted(in_force.difference(known))]
    return [((*labels, state), int(state in in_force)) for state in listed]


def counted(labels: Labels, kinds: Iterable[str], found: Iterable[str]) -> list[Series]:
    """How many of *found* are of each kind; every kind has its series."""
    counts = dict.fromkeys(kinds, 0)
    for kind in found:
        counts[kind] += 1
    return [((*labels, str(kind)), count) for kind, count in counts.items()]
