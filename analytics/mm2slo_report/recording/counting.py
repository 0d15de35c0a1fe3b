"""Arithmetic of totals: what was counted in between, shares, and means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.reporting.history import Tally

if TYPE_CHECKING:
    from collections.abc import Collection


def plus(one: Tally, other: Tally) -> Tally:
    """The sum."""
    return Tally(one.good + other.good, one.total + other.total, one.unknown + other.unknown)


def times(tally: Tally, share: float) -> Tally:
    """A share of it."""
    return Tally(tally.good * share, tally.total * share, tally.unknown * share)


def mean(tallies: Collection[Tally]) -> Tally:
    """The mean of at least one."""
    count = len(tallies)
    return Tally(
        sum(each.good for each in tallies) / count,
        sum(each.total for each in tallies) / count,
        sum(each.unknown for each in tallies) / count,
    )


def counted(before: Tally, now: Tally, *, anew: bool = False) -> Tally:
    """What counters that say *now* counted since they said *before*.

    All of it when they began *anew* or one of them fell. The three live in one process: where one
    was reset, the others were as well, even if they have passed their old values by now.
    """
    if anew or now.good < before.good or now.total < before.total or now.unknown < before.unknown:
        return now
    return Tally(now.good - before.good, now.total - before.total, now.unknown - before.unknown)
