"""Sums over any span of minutes, against a walk through every minute, and against the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scraped_counters import Replica, brute_force

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator, Tally
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.recording.exposition import Page
from mm2slo_report.recording.replica_totals import ReplicaTotals
from mm2slo_report.sources.prometheus.pooling import Pooled, below, stretches
from mm2slo_report.sources.prometheus.series import Series
from mm2slo_report.sources.prometheus.values import grown

if TYPE_CHECKING:
    from collections.abc import Sequence

INDICATOR: Final = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
MINUTES: Final = 24

minutes = st.sets(st.integers(0, MINUTES - 1))
present = st.lists(minutes, min_size=1, max_size=3)


def replicas(there: Sequence[set[int]]) -> list[Replica]:
    """One sample in each of those minutes, at its start; each counts at a speed of its own."""
    found = []
    for number, several in enumerate(there):
        replica = Replica(f"{number}:9469")
        for minute in several:
            total = 100.0 * (number + 1) * minute + minute * minute
            page = {INDICATOR: Tally(total - minute, total, float(minute // 7))}
            replica.pages[minute * MINUTE_MS] = page
        found.append(replica)
    return found


def pooled(known: Sequence[Replica]) -> Pooled:
    series = [Series(INDICATOR, (("instance", each.instance),)) for each in known]
    bits = {
        each: sum(1 << at // MINUTE_MS for at in replica.pages)
        for each, replica in zip(series, known, strict=True)
    }
    pages = {each: replica.pages for each, replica in zip(series, known, strict=True)}

    def joined(of: Series, bit: int) -> Tally:
        start = pages[of][min(pages[of])][INDICATOR]
        now = pages[of][bit * MINUTE_MS][INDICATOR]
        return Tally(now.good - start.good, now.total - start.total, now.unknown - start.unknown)

    return Pooled(bits, stretches(bits), joined)


@given(present, st.integers(0, MINUTES), st.integers(0, MINUTES))
def test_a_difference_of_two_totals_is_the_sum_of_the_minutes_between(
    there: list[set[int]], one: int, other: int
) -> None:
    known = replicas(there)
    totals = pooled(known)
    start, end = min(one, other), max(one, other)
    before, after = totals.until(start), totals.until(end)
    truth = brute_force(known, INDICATOR)
    expected = Tally()
    if start < end:
        counts = truth.count(Span(start * MINUTE_MS, end * MINUTE_MS))
        expected = Tally(counts.good, counts.total, counts.unknown)
    found = tuple(late - early for late, early in zip(after, before, strict=True))
    assert found == pytest.approx(tuple(expected), abs=1e-6)


@given(present)
def test_the_recorder_counts_the_same_of_the_same_rounds(there: list[set[int]]) -> None:
    # A replica that is new later has a first minute here, and no more than a first value there.
    known = replicas([each | {0} for each in there])
    recorder = ReplicaTotals()
    totals = pooled(known)
    for minute in range(MINUTES):
        pages = {
            each.instance: Page(each.pages[minute * MINUTE_MS])
            for each in known
            if minute * MINUTE_MS in each.pages
        }
        if pages:
            recorder.add(minute * MINUTE_MS, pages)
            recorded = tuple(recorder.tallies.get(INDICATOR, Tally()))
            assert tuple(totals.until(minute + 1)) == pytest.approx(recorded, abs=1e-6)


@given(st.integers(0, 1 << 40), st.integers(0, 45))
def test_the_highest_bit_below_a_place(bits: int, place: int) -> None:
    expected = max((each for each in range(place) if bits >> each & 1), default=None)
    assert below(bits, place) == expected


def test_one_counter_that_falls_takes_the_others_with_it() -> None:
    samples = [(1, Tally(3.0, 6.0, 0.0)), (2, Tally(4.0, 8.0, 1.0))]
    assert grown(Tally(5.0, 5.0, 0.0), samples) == Tally(4.0, 8.0, 1.0)
    assert grown(Tally(2.0, 5.0, 0.0), samples) == Tally(2.0, 3.0, 1.0)
