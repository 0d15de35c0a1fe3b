"""Arithmetic of event totals, for all sources of history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.reporting.step_counts import Tally

if TYPE_CHECKING:
    from collections.abc import Collection


def plus(one: Tally, other: Tally) -> Tally:
    return Tally(one.good + other.good, one.total + other.total, one.unknown + other.unknown)


def minus(one: Tally, other: Tally) -> Tally:
    return Tally(one.good - other.good, one.total - other.total, one.unknown - other.unknown)


def times(tally: Tally, share: float) -> Tally:
    return Tally(tally.good * share, tally.total * share, tally.unknown * share)


def mean(tallies: Collection[Tally]) -> Tally:
    """The mean; zero without *tallies*."""
    total = Tally()
    for each in tallies:
        total = plus(total, each)
    count = len(tallies) or 1
    return Tally(total.good / count, total.total / count, total.unknown / count)
