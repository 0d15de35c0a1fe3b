"""Incidents and budget by day."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import DAY
from mm2slo_core.reporting.report_entry import BudgetReading, Incident
from mm2slo_core.reporting.slo_report import by_day, incidents
from mm2slo_core.reporting.step_counts import MINUTE_MS, SpanCounts, StepCounts


def minutes(*bad: float) -> list[StepCounts]:
    return [StepCounts(n * MINUTE_MS, 60 - each, 60, 0) for n, each in enumerate(bad)]


def budget(events: float) -> BudgetReading:
    """A budget of *events*, and of 40 minutes."""
    return BudgetReading(
        total=0.001, consumed=0.0, remaining=1.0, seconds=DAY, total_events=events,
        remaining_events=events, total_minutes=40.0, remaining_minutes=40.0,
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
    assert [tuple(each) for each in by_day([first, second], counts, allowed=20)] == [
        (0, 10, 5, 0.25),
        (10, 20, 0, 0.0),
    ]
    assert by_day([first], counts, allowed=0)[0].consumed is None
