"""Parts of budget charts."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.reporting.report_query import day_spans, parse_period
from mm2slo_core.reporting.slo_report import budget_parts
from mm2slo_core.reporting.step_counts import MINUTE_MS, StepCounts

NOW = round(datetime(2026, 7, 14, 10, 30, tzinfo=UTC).timestamp() * 1000)
HOUR_MS, DAY_MS = 60 * MINUTE_MS, 1_440 * MINUTE_MS
MONTH = parse_period("28d", NOW, UTC)


@pytest.mark.parametrize("since", [None, MONTH.start - DAY_MS, MONTH.start, NOW, NOW + 1])
def test_parts_of_a_complete_history_are_days(since: int | None) -> None:
    assert budget_parts(MONTH, UTC, since, ()) == day_spans(MONTH, UTC)


@pytest.mark.parametrize(
    ("minutes", "length", "count"),
    [
        (1, 5, 1),
        (4, 5, 1),
        (48, 5, 10),
        (49, 5, 10),
        (24 * 60, 30, 48),
        (48 * 60 - 1, 60, 48),
    ],
)
def test_parts_of_less_than_two_days_are_even_steps(minutes: int, length: int, count: int) -> None:
    found = budget_parts(MONTH, UTC, NOW - minutes * MINUTE_MS, ())
    assert len(found) == count
    assert found[0].start == NOW - minutes * MINUTE_MS
    assert found[-1].end == NOW
    assert {each.end - each.start for each in found[:-1]} <= {length * MINUTE_MS}


def test_parts_of_at_least_two_days_are_days() -> None:
    start = NOW - 3 * DAY_MS
    found = budget_parts(MONTH, UTC, start + 12_345, ())
    assert found[0].start == start
    assert found[1:] == day_spans(MONTH, UTC)[-3:]


def test_parts_include_events_before_known_since() -> None:
    # A source may report known_since late.
    first = StepCounts(NOW - 7 * MINUTE_MS, 1, 2, 0)
    assert budget_parts(MONTH, UTC, NOW - 3 * MINUTE_MS, [first])[0].start == first.at


def test_parts_of_a_new_month_are_days_and_of_a_day_are_steps() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    july = parse_period("2026-07", NOW - 13 * DAY_MS, berlin)
    assert budget_parts(july, berlin, None, ()) == day_spans(july, berlin)
    day = parse_period("2026-07-13", NOW, berlin)
    found = budget_parts(day, berlin, None, ())
    assert len(found) == 48
    assert (found[0].start, found[-1].end) == (day.start, day.end)


@given(st.integers(-3 * 1_440, 32 * 1_440), st.sampled_from(["1d", "7d", "28d", "2026-07"]))
def test_parts_have_no_gaps_and_end_with_the_window(minutes: int, text: str) -> None:
    window = parse_period(text, NOW, UTC)
    since = NOW - minutes * MINUTE_MS
    found = budget_parts(window, UTC, since, ())
    assert all(one.end == other.start for one, other in pairwise(found))
    assert found[-1].end == window.end
    assert window.start <= found[0].start
    if window.start < since < window.end:
        assert found[0].start == since
