"""Incidents and budget by day."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.incidents import by_day, incidents
from mm2slo_core.reporting.minute_counts import MINUTE_MS, MinuteCounts, SpanCounts


def minutes(*bad: float) -> list[MinuteCounts]:
    return [MinuteCounts(n * MINUTE_MS, 60 - each, 60, 0) for n, each in enumerate(bad)]


def test_incidents_are_separated_by_more_than_five_good_minutes() -> None:
    found = incidents(minutes(1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 4), allowed=10)
    assert [(each.start // MINUTE_MS, each.end // MINUTE_MS, each.bad) for each in found] == [
        (13, 14, 4),
        (0, 7, 3),
    ]
    assert [each.consumed for each in found] == [0.4, pytest.approx(0.3)]


def test_incident_ends_with_minutes_without_samples() -> None:
    seen = minutes(1, 1, 0, 0, 0, 0, 0, 0, 1)
    found = incidents([seen[0], seen[8]], allowed=1)
    assert len(found) == 2


def test_incident_in_hourly_history_covers_whole_hours() -> None:
    hour = 60 * MINUTE_MS
    hours = [MinuteCounts(n * hour, 3600 - bad, 3600, 0, hour, 60) for n, bad in enumerate((5, 1))]
    good = MinuteCounts(2 * hour, 60, 60, 0)
    (found,) = incidents([*hours, good], allowed=60)
    assert (found.start, found.end, found.bad) == (0, 2 * hour, 6)


def test_incident_without_budget_consumes_all_of_it() -> None:
    (found,) = incidents(minutes(1), allowed=0)
    assert found.consumed == 1


@given(st.lists(st.integers(0, 3), max_size=60))
def test_incidents_contain_each_bad_event_once(bad: list[int]) -> None:
    found = incidents(minutes(*bad), allowed=100)
    assert sum(each.bad for each in found) == sum(bad)
    ordered = sorted(found, key=lambda each: each.start)
    for earlier, later in pairwise(ordered):
        assert later.start - earlier.end > 5 * MINUTE_MS


def test_by_day_returns_the_budget_spent() -> None:
    first, second = Span(0, 10), Span(10, 20)
    counts = {first: SpanCounts(good=5, total=10), second: SpanCounts(good=10, total=10)}
    assert [tuple(each) for each in by_day([first, second], counts, allowed=20)] == [
        (0, 10, 5, 0.25),
        (10, 20, 0, 0.0),
    ]
    assert by_day([first], counts, allowed=0)[0].consumed is None
