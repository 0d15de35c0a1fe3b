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


def minus(one: Tally, other: Tally) -> Tally:
    return Tally(*map(sub, one, other))


def has_fallen(before: Tally, now: Tally) -> bool:
    """Whether a counter fell: all three live in one process, so all were reset."""
    return any(map(lt, now, before))
