"""Arithmetic of counters: sums, means, and the increase between two samples."""

from __future__ import annotations

from operator import add, lt, sub
from typing import TYPE_CHECKING

from mm2slo_core.reporting.step_counts import Tally

if TYPE_CHECKING:
    from collections.abc import Collection


def plus(one: Tally, other: Tally) -> Tally:
    return Tally(*map(add, one, other))


def times(tally: Tally, share: float) -> Tally:
    return Tally(*(count * share for count in tally))


def mean(tallies: Collection[Tally]) -> Tally:
    """The mean; zero without *tallies*."""
    total = Tally()
    for each in tallies:
        total = plus(total, each)
    return Tally(*(count / (len(tallies) or 1) for count in total))


def tally_increase(before: Tally, now: Tally, *, restarted: bool = False) -> Tally:
    """The increase from *before* to *now*.

    *now* itself after a counter reset: the process *restarted*, or a counter fell. All three live
    in one process: if one was reset, so were the others, even if they exceed their old values.
    """
    if restarted or any(map(lt, now, before)):
        return now
    return Tally(*map(sub, now, before))
