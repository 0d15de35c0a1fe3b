"""Time series of counts and budgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.slo_report import MAX_STEPS, budget_steps, chart_step, step_spans
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, StepCounts

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
