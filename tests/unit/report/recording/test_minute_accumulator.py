"""Scrape rounds become minutes: each once, in order, whatever the clock does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from recorder_fakes import AVAILABILITY, LATENCY, NOON, RecordedHistory

from mm2slo_core.reporting.minute_counts import MINUTE_MS, Tally
from mm2slo_report.recording.exposition import Page
from mm2slo_report.recording.minute_accumulator import MinuteAccumulator
from mm2slo_report.recording.replica_totals import ReplicaTotals
from mm2slo_store.sli_history.rows import CounterState

SECOND = 1000


def page(total: float) -> Page:
    return Page({AVAILABILITY: Tally(total, total, 0)})


def test_take_ended_returns_a_minute_once_with_its_final_totals() -> None:
    minutes = MinuteAccumulator(ReplicaTotals())
    for second, total in [(0, 10), (15, 12), (45, 15)]:
        assert minutes.take_ended(NOON + second * SECOND) is None
        minutes.add(NOON + second * SECOND, {"a": page(total)})
    assert minutes.take_ended(NOON + MINUTE_MS - 1) is None
    minute = minutes.take_ended(NOON + MINUTE_MS)
    assert minute is not None
    assert minute.at == NOON
    assert minute.tallies == {AVAILABILITY: Tally(5, 5, 0)}
    assert minute.seen == {AVAILABILITY}
    last = NOON + 45 * SECOND
    assert minute.states == (CounterState("a", AVAILABILITY, last, Tally(15, 15, 0)),)
    assert minutes.take_ended(NOON + MINUTE_MS) is None


def test_take_ended_counts_events_of_a_gap_in_the_next_minute() -> None:
    minutes = MinuteAccumulator(ReplicaTotals())
    minutes.add(NOON, {"a": page(10)})
    minutes.take_ended(NOON + MINUTE_MS)
    minutes.add(NOON + MINUTE_MS, {})
    assert minutes.take_ended(NOON + 2 * MINUTE_MS) is None, "it has no sample"
    minutes.add(NOON + 5 * MINUTE_MS, {"a": page(70)})
    minute = minutes.take_ended(NOON + 6 * MINUTE_MS)
    assert minute is not None
    assert (minute.at, minute.tallies) == (NOON + 5 * MINUTE_MS, {AVAILABILITY: Tally(60, 60, 0)})


def test_take_ended_lists_only_indicators_with_samples_as_seen() -> None:
    minutes = MinuteAccumulator(ReplicaTotals())
    minutes.add(NOON, {"a": page(10), "b": page(5)})
    minutes.take_ended(NOON + MINUTE_MS)
    later = NOON + MINUTE_MS
    minutes.add(later, {"b": Page({LATENCY: Tally(1, 1, 0)})})
    minute = minutes.take_ended(NOON + 2 * MINUTE_MS)
    assert minute is not None
    assert minute.seen == minute.tallies.keys() == {LATENCY}
    assert {each.replica for each in minute.states} == {"b"}


ROUNDS = st.lists(
    st.tuples(st.integers(-200, 200), st.integers(0, 20), st.booleans(), st.booleans()), max_size=60
)
"""Seconds the clock moves, events, whether the scrape succeeds and the recorder restarts."""


@given(ROUNDS)
def test_clock_changes_and_restarts_lose_and_duplicate_no_events(
    rounds: list[tuple[int, int, bool, bool]],
) -> None:
    store, minutes = RecordedHistory(), MinuteAccumulator(ReplicaTotals())
    now, total, first = NOON, 100, None
    for seconds, events, answers, restarts in [*rounds, (100_000, 0, True, False)]:
        now, total = now + seconds * SECOND, total + events
        if restarts:
            totals = ReplicaTotals(store.latest_tallies(), store.recorder_states())
            minutes = MinuteAccumulator(totals)
            if not store.minutes:
                first = None
        ended = minutes.take_ended(now)
        if ended is not None:
            store.record_minute(ended.at, ended.tallies, ended.seen, ended.states)
        if answers:
            first = total if first is None else first
            minutes.add(now, {"a": page(total)})
    ended = minutes.take_ended(now + 2 * MINUTE_MS)
    assert ended is not None
    assert first is not None
    assert ended.tallies == {AVAILABILITY: Tally(total - first, total - first, 0)}
