"""Error budgets: figures of the SRE workbook, and properties for any counts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.error_budget import (
    Budget,
    Counts,
    Reason,
    Status,
    StatusResult,
    burn_rate,
    error_ratio,
    evaluate_status,
)
from mm2slo_core.objectives.objective import DAY, WINDOW_PAIRS, Objective, Severity
from mm2slo_core.topology import Flow

FOUR_WEEKS = 28 * DAY
TARGETS = st.sampled_from([0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999])


def budget(bad: float, events: float, target: float = 0.999, window: float = FOUR_WEEKS) -> Budget:
    return Budget(target=target, window=window, measured=window, counts=Counts(bad, events))


# The Site Reliability Workbook, chapter 5, and its table of time budgets for 30 days.
@pytest.mark.parametrize(
    ("target", "minutes"),
    [(0.95, 2160), (0.99, 432), (0.995, 216), (0.999, 43.2), (0.9995, 21.6), (0.9999, 4.32)],
)
def test_total_minutes_of_thirty_days(target: float, minutes: float) -> None:
    found = budget(0, 1000, target, 30 * DAY)
    assert found.total_minutes == pytest.approx(minutes, rel=1e-9)
    assert found.remaining_minutes == found.total_minutes


@pytest.mark.parametrize(("burn", "days"), [(1, 30), (2, 15), (10, 3), (1000, 0.03)], ids=str)
def test_exhaustion_by_burn_rate(burn: float, days: float) -> None:
    """The workbook's table 5-4: a 99.9 % objective over 30 days."""
    seconds = budget(0, 1000, 0.999, 30 * DAY).exhaustion(burn)
    assert seconds == pytest.approx(days * DAY, rel=1e-9)


@pytest.mark.parametrize(
    ("pair", "factor"), [("fast", 14.4), ("steady", 6), ("slow", 3), ("creeping", 1)]
)
def test_window_pair_factors_match_the_workbook(pair: str, factor: float) -> None:
    found = next(each for each in WINDOW_PAIRS if each.name == pair)
    assert found.factor(30 * DAY) == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize(
    ("pair", "of_a_week", "of_three_days"),
    [
        ("fast", 3.36, 1.44),
        ("steady", 1.4, 14 / 15),
        ("slow", 14 / 15, 14 / 15),
        ("creeping", 14 / 15, 14 / 15),
    ],
)
def test_window_pair_factors_of_short_windows(
    pair: str, of_a_week: float, of_three_days: float
) -> None:
    found = next(each for each in WINDOW_PAIRS if each.name == pair)
    assert found.factor(7 * DAY) == pytest.approx(of_a_week, rel=1e-9)
    assert found.factor(3 * DAY) == pytest.approx(of_three_days, rel=1e-9)


def test_overspent_budget_is_not_clamped() -> None:
    found = budget(34, 10_000)
    assert found.consumed == pytest.approx(3.4, rel=1e-9)
    assert found.remaining == pytest.approx(-2.4, rel=1e-9)
    assert found.total_events == pytest.approx(10, rel=1e-9)
    assert found.total_minutes == pytest.approx(40.32, rel=1e-9)
    assert found.remaining_minutes == pytest.approx(-96.768, rel=1e-9)
    assert found.exhaustion(5.0) == 0.0
    assert found.exhaustion(None) == 0.0
    assert found.projected(2.0, 7 * DAY) == pytest.approx(-2.9, rel=1e-9)


@pytest.mark.parametrize("events", [1_000, 3_000, 7_000, 9_990_000])
@pytest.mark.parametrize(("target", "per_bad"), [(0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1000)])
def test_exactly_exhausted_budget_is_breached(target: float, per_bad: int, events: int) -> None:
    found = budget(events / per_bad, events, target)
    assert (found.consumed, found.remaining, found.exhaustion(1.0)) == (1.0, 0.0, 0.0)
    assert evaluate_status(OBJECTIVE, found, {}).status is Status.BREACHED
    assert found.total_events == pytest.approx(events / per_bad, rel=1e-15)


def test_budget_without_events_is_none() -> None:
    found = budget(0, 0)
    assert error_ratio(found.counts) is None
    assert (found.consumed, found.remaining) == (None, None)
    assert (found.exhaustion(1.0), found.projected(1.0, DAY)) == (None, None)
    assert found.total_events == 0


def test_exhaustion_without_burn_is_none() -> None:
    found = budget(5, 10_000)
    assert found.exhaustion(0.0) is None
    assert found.exhaustion(None) is None
    # Half of the budget at burn rate 2: a quarter of the window.
    assert found.exhaustion(2.0) == pytest.approx(7 * DAY, rel=1e-9)
    assert found.projected(2.0, 7 * DAY) == pytest.approx(0.0, abs=1e-9)
    assert found.projected(None, DAY) is None


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1, 99.9])
def test_burn_rate_with_invalid_target_raises(target: float) -> None:
    with pytest.raises(ValueError, match=r"expected a share between 0 and 1"):
        burn_rate(Counts(1, 2), target)


@given(bad=st.floats(0, 1e6), good=st.floats(1e-3, 1e9), target=TARGETS)
def test_remaining_and_consumed_budget_add_up(bad: float, good: float, target: float) -> None:
    found = budget(bad, good + bad, target)
    assert found.remaining is not None
    assert found.consumed is not None
    assert found.remaining + found.consumed == pytest.approx(1.0, rel=1e-9, abs=1e-9)


@given(bad=st.integers(0, 10**6), rest=st.integers(1, 10**9), target=TARGETS)
def test_burn_rate_is_linear_in_bad_events(bad: int, rest: int, target: float) -> None:
    events = float(3 * bad + rest)
    once, thrice = (
        burn_rate(Counts(bad, events), target),
        burn_rate(Counts(3.0 * bad, events), target),
    )
    assert once is not None
    assert thrice == pytest.approx(3 * once, rel=1e-12)


def month(bad: float, events: float, days: float) -> Budget:
    """A flow with *days* of events in a month of 30."""
    return Budget(target=0.999, window=30 * DAY, measured=days * DAY, counts=Counts(bad, events))


@pytest.mark.parametrize("day", [3, 15])
def test_steady_burn_of_one_projects_to_an_empty_budget(day: int) -> None:
    found = month(day, 1_000 * day, day)
    assert found.consumed == pytest.approx(day / 30, rel=1e-12)
    assert found.projected(1.0, (30 - day) * DAY) == pytest.approx(0.0, abs=1e-12)
    assert found.exhaustion(1.0) == pytest.approx((30 - day) * DAY, rel=1e-12)


def test_five_minutes_of_outage_cost_five_minutes_on_day_three() -> None:
    minutes = 3 * 1440.0
    found = month(5, minutes, 3)
    assert found.total_minutes == pytest.approx(43.2, rel=1e-12)
    assert found.remaining_minutes == pytest.approx(38.2, rel=1e-12)


@given(bad=st.integers(0, 50), minutes=st.integers(50, 40_320))
def test_outage_costs_its_minutes_however_young_the_flow_is(bad: int, minutes: int) -> None:
    young = Budget(
        target=0.999, window=FOUR_WEEKS, measured=60.0 * minutes, counts=Counts(bad, minutes)
    )
    assert young.remaining_minutes == pytest.approx(40.32 - bad, rel=1e-9, abs=1e-9)
    assert young.total_events == pytest.approx(40.32, rel=1e-9)


def test_steps_longer_than_their_window_spend_as_much_as_the_window() -> None:
    # Steps are counted where they end, so that those of a window may be longer than it.
    steps = Budget(target=0.999, window=27 * 60, measured=30 * 60, counts=Counts(12, 60))
    exact = Budget(target=0.999, window=27 * 60, measured=27 * 60, counts=Counts(12, 60))
    assert (steps.consumed, steps.total_events) == (exact.consumed, exact.total_events)


OBJECTIVE = Objective(
    flow=Flow("us", "eu"), key=SliKey(Sli.AVAILABILITY), target=0.999, window=FOUR_WEEKS,
    max_severity=Severity.PAGE, owner="", channel="",
)  # fmt: skip
HOUR, FIVE_MINUTES = 3600.0, 300.0


def status_of(bad: float, burns: dict[float, float | None] | None = None) -> StatusResult:
    return evaluate_status(OBJECTIVE, budget(bad, 10_000), burns or {})


def test_status_by_remaining_budget() -> None:
    assert status_of(0) == StatusResult(Status.MET, Reason.WITHIN_BUDGET)
    assert status_of(7.5) == StatusResult(Status.MET, Reason.WITHIN_BUDGET)
    assert status_of(7.6) == StatusResult(Status.AT_RISK, Reason.LOW_BUDGET)
    assert status_of(9.99) == StatusResult(Status.AT_RISK, Reason.LOW_BUDGET)
    assert status_of(10.01) == StatusResult(Status.BREACHED, Reason.EXHAUSTED)


def test_finished_period_is_met_or_breached() -> None:
    burning = {HOUR: 99.0, FIVE_MINUTES: 99.0}
    kept, spent = (
        evaluate_status(OBJECTIVE, budget(bad, 10_000), burning, finished=True) for bad in (9, 10)
    )
    assert kept == StatusResult(Status.MET, Reason.WITHIN_BUDGET)
    assert spent == StatusResult(Status.BREACHED, Reason.EXHAUSTED)


def test_status_is_burning_if_both_windows_exceed() -> None:
    factor = WINDOW_PAIRS[0].factor(FOUR_WEEKS)
    assert factor == pytest.approx(13.44, rel=1e-9)
    above, below = math.nextafter(factor, 99), factor
    assert status_of(1, {HOUR: above, FIVE_MINUTES: above}) == StatusResult(
        Status.AT_RISK, Reason.BURNING, "fast"
    )
    assert status_of(1, {HOUR: above, FIVE_MINUTES: below}) == StatusResult(
        Status.MET, Reason.RECOVERING, "fast"
    )
    assert status_of(1, {HOUR: below, FIVE_MINUTES: above}).reason is Reason.WITHIN_BUDGET
    # Low budget takes precedence over recovering, burning over both.
    assert status_of(9, {HOUR: above, FIVE_MINUTES: None}).reason is Reason.LOW_BUDGET
    assert status_of(9, {HOUR: above, FIVE_MINUTES: above}).reason is Reason.BURNING


def test_status_without_events_is_idle_if_it_was_measured() -> None:
    silent = Budget(target=0.999, window=FOUR_WEEKS, measured=300, counts=Counts(0, 0))
    unseen = Budget(target=0.999, window=FOUR_WEEKS, measured=0, counts=Counts(0, 0))
    assert evaluate_status(OBJECTIVE, silent, {}) == StatusResult(Status.IDLE, Reason.NO_EVENTS)
    assert evaluate_status(OBJECTIVE, silent, {}, unknown=3) == StatusResult(
        Status.NO_DATA, Reason.UNMEASURED
    )
    assert evaluate_status(OBJECTIVE, unseen, {}) == StatusResult(Status.NO_DATA, Reason.NO_SAMPLES)
