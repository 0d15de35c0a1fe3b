"""Runs of bad minutes, by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, MinuteCounts, SpanCounts
from mm2slo_core.reporting.incidents import by_day, incidents


def minutes(*bad: float) -> list[MinuteCounts]:
    return [MinuteCounts(n * MINUTE_MS, 60 - each, 60, 0) for n, each in enumerate(bad)]


def test_a_gap_of_five_good_minutes_is_within_and_of_six_between() -> None:
    found = incidents(minutes(1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 4), allowed=10)
    assert [(each.start // MINUTE_MS, each.end // MINUTE_MS, each.bad) for each in found] == [
        (13, 14, 4),
        (0, 7, 3),
    ]
    assert [each.consumed for each in found] == [0.4, pytest.approx(0.3)]


def test_a_minute_without_a_sample_is_a_good_one() -> None:
    seen = minutes(1, 1, 0, 0, 0, 0, 0, 0, 1)
    found = incidents([seen[0], seen[8]], allowed=1)
    assert len(found) == 2


def test_what_is_kept_by_the_hour_is_bad_for_the_whole_hour() -> None:
    hour = 60 * MINUTE_MS
    hours = [MinuteCounts(n * hour, 3600 - bad, 3600, 0, hour, 60) for n, bad in enumerate((5, 1))]
    good = MinuteCounts(2 * hour, 60, 60, 0)
    (found,) = incidents([*hours, good], allowed=60)
    assert (found.start, found.end, found.bad) == (0, 2 * hour, 6)


def test_without_an_allowance_any_bad_event_is_all_of_it() -> None:
    (found,) = incidents(minutes(1), allowed=0)
    assert found.consumed == 1


@given(st.lists(st.integers(0, 3), max_size=60))
def test_no_bad_event_is_lost_or_told_twice(bad: list[int]) -> None:
    found = incidents(minutes(*bad), allowed=100)
    assert sum(each.bad for each in found) == sum(bad)
    ordered = sorted(found, key=lambda each: each.start)
    for earlier, later in pairwise(ordered):
        assert later.start - earlier.end > 5 * MINUTE_MS


def test_a_day_spends_its_share_of_the_budget() -> None:
    first, second = Span(0, 10), Span(10, 20)
    counts = {first: SpanCounts(good=5, total=10), second: SpanCounts(good=10, total=10)}
    assert [tuple(each) for each in by_day([first, second], counts, allowed=20)] == [
        (0, 10, 5, 0.25),
        (10, 20, 0, 0.0),
    ]
    assert by_day([first], counts, allowed=0)[0].consumed is None
