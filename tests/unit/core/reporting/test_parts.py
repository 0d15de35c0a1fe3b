"""By which parts a budget is told: the whole of what is known, and never one dot at its end."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.reporting.history import MINUTE_MS, MinuteCounts
from mm2slo_core.reporting.parts import budget_parts
from mm2slo_core.reporting.periods import days, period

NOW = round(datetime(2026, 7, 14, 10, 30, tzinfo=UTC).timestamp() * 1000)
HOUR_MS, DAY_MS = 60 * MINUTE_MS, 1_440 * MINUTE_MS
MONTH = period("28d", NOW, UTC)


@pytest.mark.parametrize("since", [None, MONTH.start - DAY_MS, MONTH.start, NOW, NOW + 1])
def test_a_window_that_is_known_as_a_whole_is_told_by_days(since: int | None) -> None:
    assert budget_parts(MONTH, UTC, since, ()) == days(MONTH, UTC)


@pytest.mark.parametrize(
    ("lived", "length", "count"),
    [
        (1, 1, 1),
        (4, 1, 4),
        (48, 1, 48),
        (49, 5, 10),
        (24 * 60, 30, 48),
        (48 * 60 - 1, 60, 48),
    ],
)
def test_a_life_of_less_than_two_days_is_told_by_even_steps(
    lived: int, length: int, count: int
) -> None:
    found = budget_parts(MONTH, UTC, NOW - lived * MINUTE_MS, ())
    assert len(found) == count
    assert found[0].start == NOW - lived * MINUTE_MS
    assert found[-1].end == NOW
    assert {each.end - each.start for each in found[:-1]} <= {length * MINUTE_MS}


def test_from_two_days_on_a_life_is_told_by_its_days() -> None:
    start = NOW - 3 * DAY_MS
    found = budget_parts(MONTH, UTC, start + 12_345, ())
    assert found[0].start == start
    assert found[1:] == days(MONTH, UTC)[-3:]


def test_events_before_the_date_of_the_first_datum_are_told_as_well() -> None:
    # A source may find out late since when it knows.
    first = MinuteCounts(NOW - 7 * MINUTE_MS, 1, 2, 0)
    assert budget_parts(MONTH, UTC, NOW - 3 * MINUTE_MS, [first])[0].start == first.at


def test_a_month_that_has_just_begun_is_told_by_days_and_a_day_by_steps() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    july = period("2026-07", NOW - 13 * DAY_MS, berlin)
    assert budget_parts(july, berlin, None, ()) == days(july, berlin)
    day = period("2026-07-13", NOW, berlin)
    found = budget_parts(day, berlin, None, ())
    assert len(found) == 48
    assert (found[0].start, found[-1].end) == (day.start, day.end)


@given(st.integers(-3 * 1_440, 32 * 1_440), st.sampled_from(["1d", "7d", "28d", "2026-07"]))
def test_parts_touch_each_other_and_reach_to_the_end(lived: int, text: str) -> None:
    window = period(text, NOW, UTC)
    since = NOW - lived * MINUTE_MS
    found = budget_parts(window, UTC, since, ())
    assert all(one.end == other.start for one, other in pairwise(found))
    assert found[-1].end == window.end
    assert window.start <= found[0].start
    if window.start < since < window.end:
        assert found[0].start == since
