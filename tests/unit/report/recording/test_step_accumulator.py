"""Scrape rounds become steps: each event once, whatever the clock does."""

from hypothesis import given
from hypothesis import strategies as st
from recorder_fakes import AVAILABILITY, LATENCY, NOON, RecordedHistory

from mm2slo_core.reporting.step_counts import STEP_MS, Tally
from mm2slo_report.recording.scraped_counters import Page, StepAccumulator
from mm2slo_store.sli_history import CounterState

SECOND = 1000


def page(total: float) -> Page:
    return Page({AVAILABILITY: Tally(total, total, 0)})


def test_take_returns_the_step_so_far_once() -> None:
    steps = StepAccumulator()
    for second, total in [(15, 10), (30, 12), (45, 15)]:
        steps.add(NOON + second * SECOND, {"a": page(total)})
    step = steps.take()
    assert step is not None
    assert (step.end, step.counts) == (NOON + STEP_MS, {AVAILABILITY: Tally(5, 5, 0)})
    last = NOON + 45 * SECOND
    assert step.states == (CounterState("a", AVAILABILITY, last, Tally(15, 15, 0)),)
    assert steps.take() is None
    assert steps.add(NOON + STEP_MS - 1, {"a": page(20)}) is None
    whole = steps.add(NOON + STEP_MS, {"a": page(22)})
    assert whole is not None
    assert (whole.end, whole.counts) == (NOON + STEP_MS, {AVAILABILITY: Tally(10, 10, 0)})
    step = steps.take()
    assert step is not None
    assert (step.end, step.counts) == (NOON + 2 * STEP_MS, {AVAILABILITY: Tally(2, 2, 0)})


def test_add_first_scrape_measures_nothing() -> None:
    steps = StepAccumulator()
    steps.add(NOON, {"a": page(10)})
    step = steps.take()
    assert step is not None
    assert step.counts == {}
    assert len(step.states) == 1


def test_add_after_a_gap_of_more_than_a_step_counts_nothing_of_the_gap() -> None:
    steps = StepAccumulator()
    steps.add(NOON, {"a": page(10)})
    steps.add(NOON + STEP_MS, {"a": page(20)})
    steps.add(NOON + 2 * STEP_MS + 1, {"a": page(70)})
    step = steps.take()
    assert step is not None
    assert (step.end, step.counts) == (NOON + 3 * STEP_MS, {})
    steps.add(NOON + 2 * STEP_MS + 15 * SECOND, {"a": page(71)})
    step = steps.take()
    assert step is not None
    assert step.counts == {AVAILABILITY: Tally(1, 1, 0)}


def test_take_lists_only_indicators_that_were_measured_in_the_step() -> None:
    steps = StepAccumulator()
    both = {AVAILABILITY: Tally(1, 1, 0), LATENCY: Tally(1, 1, 0)}
    steps.add(NOON - 2 * SECOND, {"a": Page(both)})
    steps.add(NOON - SECOND, {"a": Page(both)})
    steps.add(NOON + SECOND, {"a": Page({LATENCY: Tally(4, 5, 0)})})
    step = steps.take()
    assert step is not None
    assert step.counts == {LATENCY: Tally(3, 4, 0)}


def test_take_of_an_average_over_three_replicas_is_whole() -> None:
    steps = StepAccumulator()
    for number in range(4):
        pages = {name: page(number * (name == "a")) for name in "abc"}
        steps.add(NOON + (1 + number) * SECOND, pages)
    step = steps.take()
    assert step is not None
    assert step.counts == {AVAILABILITY: Tally(1, 1, 0)}


ROUNDS = st.lists(
    st.tuples(st.integers(-200, 200), st.integers(0, 20), st.booleans(), st.booleans()), max_size=60
)
"""Seconds the clock moves, events, whether the recorder stores and restarts."""


@given(ROUNDS)
def test_clock_changes_and_restarts_lose_and_duplicate_no_events(
    rounds: list[tuple[int, int, bool, bool]],
) -> None:
    store, steps = RecordedHistory(), StepAccumulator()
    now, total = NOON, 100
    first: int | None = None
    for seconds, events, stores, restarts in [*rounds, (1, 0, True, False)]:
        now, total = now + seconds * SECOND, total + events
        if stores and (step := steps.take()) is not None:
            store.record_step(*step)
        if restarts:
            if not store.states:
                first = None
            newest = store.latest_step() or (0, {})
            at = max((each.at for each in store.states.values()), default=now)
            # What was not stored is found again, unless more than a step passed.
            now = min(now, at + STEP_MS)
            steps = StepAccumulator(store.recorder_states(), *newest)
        first = total if first is None else first
        if (step := steps.add(now, {"a": page(total)})) is not None:
            store.record_step(*step)
    step = steps.take()
    assert step is not None
    store.record_step(*step)
    counted = sum(each.get(AVAILABILITY, Tally()).total for each in store.recorded.values())
    assert counted == total - (first or 0)
