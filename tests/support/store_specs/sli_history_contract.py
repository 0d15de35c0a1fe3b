"""SLI history on every back-end: tests over the fixture `back_end`."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mm2slo_core.reporting.minute_counts import MinuteCounts, SpanCounts, Tally
from mm2slo_store import CounterState
from store_specs.sample_history import BACK, HOUR, SLOW, START, UP, ReferenceHistory, at, span

if TYPE_CHECKING:
    from store_specs.back_end import BackEnd

ONE_BAD = (59.0, 1.0, 0.0)


class SliHistoryContract:
    """Totals are recorded, differences are returned."""

    def test_recorded_minutes_survive_a_restart(self, back_end: BackEnd) -> None:
        tallies = {UP: Tally(59, 60, 1), SLOW: Tally(7.5, 9.25, 0)}
        with back_end.open() as store:
            store.record_minute(at(3), tallies, [UP, SLOW])
        with back_end.open() as store:
            assert store.latest_tallies() == tallies
            assert store.latest_minute() == at(3)
            assert store.recorded_indicators() == (UP, SLOW)
            assert store.first_seen([SLOW, BACK]) == {SLOW: at(3), BACK: None}
            assert store.span_counts([UP, BACK], [span(0, 5), span(4, 5)]) == {
                UP: (SpanCounts(good=59, total=60, unknown=1, minutes=1), SpanCounts()),
                BACK: (SpanCounts(), SpanCounts()),
            }
            assert store.minute_counts(UP, span(0, 5)) == (MinuteCounts(at(3), 59, 60, 1),)
            assert store.minute_counts(BACK, span(0, 5)) == ()

    def test_empty_store_has_no_history(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.latest_tallies() == {}
            assert store.latest_minute() is None
            assert store.recorded_indicators() == ()
            assert store.thin(at(0), HOUR) == 0
            assert store.forget(at(0)) == 0
            assert store.recorder_states() == ()

    def test_record_minute_again_replaces_it(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.record_minute(at(58), {UP: Tally(30, 30)}, [UP])
            store.record_minute(at(59), {UP: Tally(40, 41)}, [UP])
            store.record_minute(at(59), {UP: Tally(60, 62)}, [UP])
            once = back_end.content()
            store.record_minute(at(59), {UP: Tally(60, 62)}, [UP])
            assert back_end.content() == once
            assert store.minute_counts(UP, span(0, 60)) == (
                MinuteCounts(at(58), 30, 30, 0),
                MinuteCounts(at(59), 30, 32, 0),
            )

    def test_record_minute_never_changes_earlier_ones(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.record_minute(at(61), {UP: Tally(10, 10)}, [UP])
            store.record_minute(at(65), {UP: Tally(20, 20)}, [UP])
            before = back_end.content()
            for earlier in (64, 61, 5, -100):
                store.record_minute(at(earlier), {UP: Tally(25, 26)}, [UP])
            assert back_end.content() == before
            store.record_minute(at(66), {UP: Tally(26, 27)}, [UP])
            assert store.minute_counts(UP, span(66, 67)) == (MinuteCounts(at(66), 6, 7, 0),)

    def test_record_minute_totals_never_decrease(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.record_minute(at(0), {UP: Tally(10, 12, 3)}, [UP])
            store.record_minute(at(1), {UP: Tally(4, 13, 2)}, [UP])
            store.record_minute(at(60), {UP: Tally(4, 12, 2)}, [UP])
            assert store.latest_tallies() == {UP: Tally(10, 13, 3)}

    def test_record_minute_ignores_unseen_indicators(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            tallies = {UP: Tally(10, 10), SLOW: Tally(10, 10)}
            store.record_minute(at(0), tallies, [UP])
            assert store.latest_tallies() == {UP: Tally(10, 10)}
            store.record_minute(at(1), tallies, [])
            assert store.latest_minute() == at(0)

    def test_span_counts_events_of_a_gap_in_the_next_minute(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            history.steady(10, 20, ONE_BAD, UP)
            # Hours pass without a row.
            history.minute(400, {UP: (300.0, 7.0, 2.0)})
            history.minute(470, {UP: ONE_BAD})
            spans = [
                span(*each)
                for each in ((0, 20), (19, 90), (30, 300), (5, 400), (70, 401), (400, 500))
            ]
            assert history.stored(UP, *spans) == history.truth(UP, *spans)
            assert history.stored(UP, span(70, 401)) == (
                SpanCounts(good=300, total=307, unknown=2, minutes=1),
            )

    def test_span_counts_of_indicators_with_different_lifetimes(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            history.steady(50, 130, ONE_BAD, UP)
            history.steady(130, 190, ONE_BAD, UP, SLOW)
            history.steady(190, 200, (3.0, 4.0, 5.0), BACK)
            spans = [span(*each) for each in ((0, 60), (55, 135), (100, 250), (185, 195))]
            counts = store.span_counts([BACK, UP, SLOW], spans)
            assert list(counts) == [BACK, UP, SLOW]
            assert counts == {each: history.truth(each, *spans) for each in (BACK, UP, SLOW)}

    def test_span_counts_of_fractional_events_are_exact(self, back_end: BackEnd) -> None:
        """The average over three replicas, which no float represents exactly."""
        with back_end.open() as store:
            for number in range(200):
                events = 1_000_000 + 20 * number + number / 3
                store.record_minute(at(number), {UP: Tally(events - 1 / 3, events)}, [UP])
            (counted,) = store.span_counts([UP], [span(31, 91)])[UP]
            assert counted.good == counted.total == 60 * 20 + 20
            assert counted.bad == 0
            minutes = store.minute_counts(UP, span(31, 91))
            assert {each.good for each in minutes} == {20.333333}

    @pytest.mark.parametrize(
        ("minute", "tally"), [(0.5, Tally()), (0, Tally(math.nan)), (0, Tally(1, math.inf))]
    )
    def test_record_minute_invalid_minute_or_total_is_refused(
        self, back_end: BackEnd, minute: float, tally: Tally
    ) -> None:
        with back_end.open() as store:
            before = back_end.content()
            with pytest.raises(ValueError, match="expected"):
                store.record_minute(int(START + minute * 60_000), {UP: tally}, [UP])
            with pytest.raises(ValueError, match="has no totals"):
                store.record_minute(at(0), {UP: Tally()}, [UP, SLOW])
            assert back_end.content() == before

    def test_concurrent_readers_see_whole_minutes(self, back_end: BackEnd) -> None:
        with back_end.open() as store, back_end.open() as theirs, ThreadPoolExecutor(1) as pool:
            minutes = 120

            def records() -> None:
                for number in range(minutes):
                    tally = Tally(number + 1, number + 1)
                    store.record_minute(at(number), {UP: tally, BACK: tally}, [UP, BACK])

            writing = pool.submit(records)
            seen = 0.0
            while seen < minutes:
                if writing.done():
                    writing.result()
                counts = theirs.span_counts([UP, BACK], [span(0, minutes)])
                assert counts[UP] == counts[BACK]
                assert counts[UP][0].total == counts[UP][0].minutes >= seen
                seen = counts[UP][0].total


class RetentionContract:
    """Old minutes are merged into hours, old hours are deleted."""

    def test_thin_keeps_totals_and_marks_counts_as_coarse(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            history.steady(30, 200, ONE_BAD, UP)
            assert store.thin(at(180), HOUR) == 2
            whole = [span(*each) for each in ((0, 120), (60, 120), (60, 130), (125, 190))]
            assert history.stored(UP, *whole) == history.truth(UP, *whole)
            # An edge in a folded hour moves to its start.
            (early, late, within) = history.stored(UP, span(90, 150), span(20, 90), span(70, 80))
            assert early == SpanCounts(good=90 * 59, total=90 * 60, minutes=90, coarse=True)
            assert late == SpanCounts(good=30 * 59, total=30 * 60, minutes=30, coarse=True)
            assert within == SpanCounts(coarse=True)

    def test_minute_counts_of_a_merged_hour_are_one(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            history.steady(30, 122, ONE_BAD, UP)
            store.thin(at(180), HOUR)
            assert store.minute_counts(UP, span(0, 200)) == (
                MinuteCounts(at(0), 30 * 59, 30 * 60, 0, HOUR, 30),
                MinuteCounts(at(60), 60 * 59, 60 * 60, 0, HOUR, 60),
                MinuteCounts(at(120), 59, 60, 0),
                MinuteCounts(at(121), 59, 60, 0),
            )
            assert store.minute_counts(UP, span(70, 121)) == (
                MinuteCounts(at(70), 60 * 59, 60 * 60, 0, 50 * 60_000, 60),
                MinuteCounts(at(120), 59, 60, 0),
            )
            assert store.minute_counts(UP, span(70, 90)) == ()

    def test_thin_is_idempotent(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            for number in range(0, 60 * 24 * 4, 60):
                history.minute(number, {UP: ONE_BAD})
            end = 60 * 24 * 4
            assert store.thin(at(end), 2 * 24 * HOUR) == 48
            once = back_end.content()
            assert store.thin(at(end), 2 * 24 * HOUR) == 0
            assert store.thin(at(end + 59), 2 * 24 * HOUR) == 0
            assert back_end.content() == once
            assert store.thin(at(end + 60), 2 * 24 * HOUR) == 1
            spans = [span(0, end), span(60 * 24, end), span(60 * 71, 60 * 73)]
            assert history.stored(UP, *spans) == history.truth(UP, *spans)

    def test_record_minute_after_merged_hours(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            history.steady(0, 5, ONE_BAD, UP)
            assert store.thin(at(600), HOUR) == 1
            # A minute before the merged hours changes nothing.
            store.record_minute(at(30), {UP: Tally(1e6, 1e6)}, [UP])
            history.steady(700, 710, (1.0, 2.0, 3.0), UP)
            spans = [span(0, 705), span(60, 710)]
            assert history.stored(UP, *spans) == history.truth(UP, *spans)

    def test_thin_retention_below_an_hour_is_refused(self, back_end: BackEnd) -> None:
        with back_end.open() as store, pytest.raises(ValueError, match="an hour or more"):
            store.thin(at(600), HOUR - 1)

    def test_forget_keeps_later_counts_unchanged(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            history.steady(30, 40, ONE_BAD, UP, SLOW)
            history.steady(100, 250, ONE_BAD, UP)
            later = [span(120, 130), span(120, 250), span(190, 300)]
            counts = history.stored(UP, *later)
            assert store.forget(at(120)) == 2
            assert history.stored(UP, *later) == counts
            assert history.stored(UP, span(0, 130)) == history.truth(UP, span(120, 130))
            assert store.first_seen([UP, SLOW]) == {UP: at(120), SLOW: at(30)}
            # The newest row of a stopped indicator remains, so that it can continue.
            history.minute(260, {SLOW: ONE_BAD})
            assert history.stored(SLOW, span(200, 300)) == history.truth(SLOW, span(200, 300))
            assert store.forget(at(240)) == 3
            assert store.first_seen([SLOW]) == {SLOW: at(260)}


class CounterStateContract:
    """Counter states are stored in the transaction of their minute."""

    def test_record_minute_replaces_single_counter_states(self, back_end: BackEnd) -> None:
        first = CounterState("http://a/metrics", UP, at(0), Tally(5, 6, 7), started=at(-9))
        second = CounterState("http://b/metrics", UP, at(0), Tally(0.5, 1, 2))
        third = second._replace(indicator=SLOW)
        with back_end.open() as store:
            store.record_minute(at(0), {UP: Tally()}, [UP], [first, second])
            changed = second._replace(at=at(1), raw=Tally(8, 9, 10), started=at(1))
            store.record_minute(at(1), {}, [], [changed, third])
        with back_end.open() as store:
            assert store.recorder_states() == (first, changed, third)
            # It has a state, but no history yet.
            assert store.recorded_indicators() == (UP,)
            assert store.first_seen([SLOW]) == {SLOW: None}
            assert store.latest_tallies() == {UP: Tally()}

    def test_record_minute_ignores_older_counter_states(self, back_end: BackEnd) -> None:
        """A suspended recorder continues after another took over."""
        with back_end.open() as store:
            newer = CounterState("http://a/metrics", UP, at(3), Tally(9, 9, 9))
            store.record_minute(at(3), {UP: Tally(9, 9, 9)}, [UP], [newer])
            older = newer._replace(at=at(1), raw=Tally(4, 4, 4))
            store.record_minute(at(1), {UP: Tally(4, 4, 4)}, [UP], [older])
            assert store.recorder_states() == (newer,)
            again = newer._replace(raw=Tally(10, 10, 9))
            store.record_minute(at(3), {UP: Tally(10, 10, 9)}, [UP], [again])
            assert store.recorder_states() == (again,)

    def test_record_minute_failing_leaves_states_unchanged(self, back_end: BackEnd) -> None:
        state = CounterState("a", UP, at(0), Tally(1, 1))
        with back_end.open() as store:
            store.record_minute(at(0), {UP: Tally(1, 1)}, [UP], [state])
            before = back_end.content()
            refused = state._replace(replica=None)  # type: ignore[arg-type]
            with pytest.raises(Exception, match=r"(?i)null"):
                store.record_minute(at(1), {UP: Tally(2, 2)}, [UP], [refused])
            assert back_end.content() == before
