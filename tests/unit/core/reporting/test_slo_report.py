"""Parts and series of budgets, and incidents."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import DAY
from mm2slo_core.reporting.report_entry import BudgetPart, BudgetReading, Incident
from mm2slo_core.reporting.report_query import day_spans, parse_period
from mm2slo_core.reporting.slo_report import (
    MAX_STEPS,
    budget_parts,
    budget_steps,
    by_day,
    chart_step,
    incidents,
    step_spans,
)
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, SpanCounts, StepCounts

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


HOUR = 60 * MINUTE_MS


def test_last_step_may_be_shorter() -> None:
    assert step_spans(Span(0, 150 * MINUTE_MS), HOUR) == (
        Span(0, HOUR), Span(HOUR, 2 * HOUR), Span(2 * HOUR, 150 * MINUTE_MS),
    )  # fmt: skip


@pytest.mark.parametrize("length", [0, 1, MINUTE_MS, 7 * MINUTE_MS, -STEP_MS])
def test_part_of_a_step_raises(length: int) -> None:
    with pytest.raises(ValueError, match="expected a multiple of five minutes"):
        step_spans(Span(0, HOUR), length)


def test_too_many_steps_raise() -> None:
    assert len(step_spans(Span(0, MAX_STEPS * STEP_MS), STEP_MS)) == MAX_STEPS
    with pytest.raises(ValueError, match="2,001 steps"):
        step_spans(Span(0, MAX_STEPS * STEP_MS + 1), STEP_MS)


@pytest.mark.parametrize(
    ("hours", "minutes"),
    [(1, 5), (20, 5), (21, 15), (28 * 24, 360), (90 * 24, 720), (999 * 24, 7_200)],
)
def test_chart_step_by_length_of_span(hours: int, minutes: int) -> None:
    assert chart_step(Span(0, hours * HOUR)) == minutes * MINUTE_MS


def test_series_remaining_budget_decreases_with_each_step() -> None:
    given_steps = [
        StepCounts(at * STEP_MS, 8.0 if at == 3 else 10.0, 10.0, 1.0, STEP_MS, 5) for at in range(6)
    ]
    found = budget_steps(given_steps, step_spans(Span(0, 8 * STEP_MS), 2 * STEP_MS), 0.9, 2400)
    # 60 events in 6 of 8 steps allow 8 bad ones; two are spent in the second step.
    assert [each.remaining for each in found] == pytest.approx([1.0, 0.75, 0.75, 0.75])
    assert [each.ratio for each in found] == [1.0, 0.9, 1.0, None]
    assert [each.burn_rate for each in found] == pytest.approx([0.0, 1.0, 0.0, None])
    assert [each.counts.minutes for each in found] == [10, 10, 10, 0]
    assert found[0].counts.unknown == 2


def test_series_of_an_exactly_exhausted_budget_ends_at_zero() -> None:
    # 1 - 0.999 in binary fractions is a little more than 0.001.
    one = [StepCounts(0, 999.0, 1_000.0, 0.0, STEP_MS, 5)]
    (found,) = budget_steps(one, step_spans(Span(0, STEP_MS), STEP_MS), 0.999, 300)
    assert found.remaining == 0.0


@given(st.lists(st.tuples(st.integers(-3, 40), st.integers(0, 9), st.integers(0, 9))))
def test_series_counts_each_minute_once_in_any_order(
    given_minutes: list[tuple[int, int, int]],
) -> None:
    minutes = [
        StepCounts(at * MINUTE_MS, float(good), float(good + bad), 0.0)
        for at, good, bad in dict.fromkeys(given_minutes)
    ]
    span = Span(0, 30 * MINUTE_MS)
    found = budget_steps(minutes, step_spans(span, STEP_MS), 0.99, 1800)
    for each in found:
        own = [minute for minute in minutes if each.start <= minute.at < each.end]
        assert each.counts.minutes == len(own)
        assert each.counts.good == sum(minute.good for minute in own)
        assert each.counts.total == sum(minute.total for minute in own)


def minutes(*bad: float) -> list[StepCounts]:
    return [StepCounts(n * MINUTE_MS, 60 - each, 60, 0) for n, each in enumerate(bad)]


def budget(events: float) -> BudgetReading:
    """A budget of *events*, and of 40 minutes."""
    return BudgetReading(
        total=0.001, consumed=0.0, remaining=1.0, seconds=DAY, total_events=events,
        remaining_events=events, total_seconds=2400.0, total_minutes=40.0, remaining_minutes=40.0,
        minutes_are_estimate=False,
    )  # fmt: skip


def found_in(
    given: list[StepCounts], allowed: float = 100, sli: Sli = Sli.AVAILABILITY
) -> tuple[Incident, ...]:
    return incidents(given, budget(allowed), sli)


def test_incidents_are_separated_by_more_than_five_good_minutes() -> None:
    found = found_in(minutes(1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 4), 10)
    assert [(each.start // MINUTE_MS, each.end // MINUTE_MS, each.bad) for each in found] == [
        (13, 14, 4),
        (0, 7, 3),
    ]
    assert [each.consumed for each in found] == [0.4, pytest.approx(0.3)]
    assert [each.equivalent_minutes for each in found] == pytest.approx([16, 12])


def test_bad_steps_are_merged() -> None:
    step = 5 * MINUTE_MS
    bad = (0, 3, 40, 0, 2, 0, 0, 5)
    given = [StepCounts(n * step, 60 - each, 60, 0, step, 5) for n, each in enumerate(bad)]
    found = found_in(given)
    assert [(each.start // step, each.end // step, each.bad) for each in found] == [
        (1, 5, 45),
        (7, 8, 5),
    ]


def test_few_bad_events_or_little_budget_are_no_incident() -> None:
    assert found_in(minutes(2), 10) == ()
    assert found_in(minutes(3), 601) == ()
    assert len(found_in(minutes(3), 600)) == 1


def test_lost_record_always_is_an_incident() -> None:
    (found,) = found_in(minutes(0, 1), 10_000, Sli.COMPLETENESS)
    assert (found.bad, found.consumed) == (1, 0.0001)


def test_incident_ends_with_minutes_without_samples() -> None:
    seen = minutes(3, 1, 0, 0, 0, 0, 0, 0, 3)
    assert len(found_in([seen[0], seen[8]], 1)) == 2


def test_incident_without_budget_consumes_all_of_it() -> None:
    (found,) = found_in(minutes(3), 0)
    assert found.consumed == 1


@given(st.lists(st.integers(0, 3), max_size=60))
def test_incidents_contain_each_bad_event_once(bad: list[int]) -> None:
    found = found_in(minutes(*bad), sli=Sli.COMPLETENESS)
    assert sum(each.bad for each in found) == sum(bad)
    ordered = sorted(found, key=lambda each: each.start)
    for earlier, later in pairwise(ordered):
        assert later.start - earlier.end > 5 * MINUTE_MS


def test_by_day_returns_the_budget_spent() -> None:
    first, second = Span(0, 10), Span(10, 20)
    counts = {first: SpanCounts(good=5, total=10), second: SpanCounts(good=10, total=10)}
    assert by_day([first, second], counts, allowed=20) == (
        BudgetPart(0, 10, 5, 0.25),
        BudgetPart(10, 20, 0, 0.0),
    )
    assert by_day([first], counts, allowed=0)[0].consumed is None
