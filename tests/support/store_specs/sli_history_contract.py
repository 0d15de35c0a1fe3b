"""SLI history on every back-end: tests over the fixture `back_end`."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import STEP_MS, SpanCounts, StepCounts, Tally
from mm2slo_store.sli_history import CounterState
from store_specs.back_end import BackEnd
from store_specs.sample_history import BACK, SLOW, UP, ReferenceHistory, at, span

ONE_BAD = Tally(299, 300, 0)


class SliHistoryContract:
    """Steps are recorded and added up."""

    def test_recorded_steps_survive_a_restart(self, back_end: BackEnd) -> None:
        counts = {UP: Tally(59, 60, 1), SLOW: Tally(7.5, 9.25, 0)}
        with back_end.open() as store:
            store.record_step(at(4), counts)
        with back_end.open() as store:
            assert store.latest_step() == (at(4), counts)
            assert list(store.first_seen().items()) == [(UP, at(3)), (SLOW, at(3))]
            assert store.last_seen([UP, BACK], at(9)) == {UP: at(4), BACK: None}
            assert store.last_seen([UP], at(4) - 1) == {UP: None}
            assert store.span_counts([UP, BACK], [span(0, 5), span(4, 5)]) == {
                UP: (SpanCounts(good=59, total=60, unknown=1, minutes=5), SpanCounts()),
                BACK: (SpanCounts(), SpanCounts()),
            }
            assert store.steps(UP, span(0, 5)) == (StepCounts(at(3), 59, 60, 1, STEP_MS, 5),)
            assert store.steps(BACK, span(0, 5)) == ()

    def test_rows_hold_the_counts_of_a_step_as_they_are(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.record_step(at(4), {UP: Tally(59, 61, 3)})
            rows = back_end.content()["sli_steps"]
        assert rows == [
            repr({"indicator": 1, "end_at": at(4), "good": 59.0, "bad": 2.0, "unknown": 3.0})
        ]

    def test_empty_store_has_no_history(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.latest_step() is None
            assert store.first_seen() == {}
            assert store.forget(at(0)) == 0
            assert store.recorder_states() == ()

    def test_record_step_again_replaces_it(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.record_step(at(1), {UP: Tally(30, 30), SLOW: Tally(1, 1)})
            store.record_step(at(1), {UP: Tally(60, 62, 1)})
            assert store.latest_step() == (at(1), {UP: Tally(60, 62, 1), SLOW: Tally(1, 1)})

    def test_step_belongs_to_the_span_it_ends_in(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.record_step(at(1), {UP: ONE_BAD})
            before, within, after = (
                Span(at(0), at(1) - 60_000),
                Span(at(1) - 60_000, at(1)),
                Span(at(1), at(2)),
            )
            found = store.span_counts([UP], [before, within, after])[UP]
            assert [each.total for each in found] == [0, 300, 0]
            (step,) = store.steps(UP, within)
            assert (step.at, step.length, step.total) == (within.start, 60_000, 300)

    def test_missed_step_is_unmeasured(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            for step in (0, 1, 3, 40):
                history.record(step, {UP: ONE_BAD})
            spans = [span(0, 4), span(2, 3), span(2, 41), span(4, 40)]
            assert history.stored(UP, *spans) == history.truth(UP, *spans)
            assert [each.minutes for each in history.stored(UP, *spans)] == [15, 0, 10, 0]
            assert [each.at for each in store.steps(UP, span(0, 50))] == [
                at(0), at(1), at(3), at(40),
            ]  # fmt: skip

    def test_span_counts_of_indicators_with_different_lifetimes(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            for step in range(50):
                history.record(step, {UP: ONE_BAD} | ({SLOW: Tally(1, 2, 3)} if step > 30 else {}))
            history.record(50, {BACK: Tally(0, 7)})
            spans = [span(*each) for each in ((0, 12), (5, 35), (28, 60), (50, 51))]
            counts = store.span_counts([BACK, UP, SLOW], spans)
            assert list(counts) == [BACK, UP, SLOW]
            assert counts == {each: history.truth(each, *spans) for each in (BACK, UP, SLOW)}

    @pytest.mark.parametrize(
        ("end", "tally"), [(0.5, Tally()), (0, Tally(math.nan)), (0, Tally(1, math.inf))]
    )
    def test_record_step_invalid_end_or_count_is_refused(
        self, back_end: BackEnd, end: float, tally: Tally
    ) -> None:
        with back_end.open() as store:
            before = back_end.content()
            with pytest.raises(ValueError, match="expected"):
                store.record_step(at(0) + int(end * STEP_MS), {UP: tally})
            assert back_end.content() == before

    def test_concurrent_readers_see_whole_steps(self, back_end: BackEnd) -> None:
        with back_end.open() as store, back_end.open() as theirs, ThreadPoolExecutor(1) as pool:
            steps = 120

            def records() -> None:
                for number in range(steps):
                    store.record_step(at(number + 1), dict.fromkeys((UP, BACK), Tally(5, 5)))

            writing = pool.submit(records)
            seen = 0.0
            while seen < 5 * steps:
                if writing.done():
                    writing.result()
                counts = theirs.span_counts([UP, BACK], [span(0, steps)])
                assert counts[UP] == counts[BACK]
                assert counts[UP][0].total == counts[UP][0].minutes >= seen
                seen = counts[UP][0].total

    def test_forget_deletes_only_older_steps(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            history = ReferenceHistory(store)
            for step in range(10):
                history.record(step, {UP: ONE_BAD, SLOW: ONE_BAD} if step < 3 else {UP: ONE_BAD})
            assert store.forget(at(5)) == 5 + 3
            assert store.forget(at(5)) == 0
            assert store.first_seen() == {UP: at(5)}
            assert history.stored(UP, span(0, 10)) == history.truth(UP, span(5, 10))
            history.record(10, {SLOW: ONE_BAD})
            assert store.first_seen() == {UP: at(5), SLOW: at(10)}


class CounterStateContract:
    """Counter states are stored in the transaction of their step."""

    def test_record_step_replaces_single_counter_states(self, back_end: BackEnd) -> None:
        first = CounterState("http://a/metrics", UP, at(0), Tally(5, 6, 7), started=at(-9))
        second = CounterState("http://b/metrics", UP, at(0), Tally(0.5, 1, 2))
        third = second._replace(indicator=SLOW)
        with back_end.open() as store:
            store.record_step(at(0), {UP: Tally()}, [first, second])
            changed = second._replace(at=at(1), raw=Tally(8, 9, 10), started=at(1))
            store.record_step(at(1), {}, [changed, third])
        with back_end.open() as store:
            assert store.recorder_states() == (first, changed, third)
            # It has a state, but no history yet.
            assert store.first_seen() == {UP: at(-1)}
            assert store.latest_step() == (at(0), {UP: Tally()})

    def test_record_step_ignores_older_counter_states(self, back_end: BackEnd) -> None:
        """A suspended recorder continues after another took over."""
        with back_end.open() as store:
            newer = CounterState("http://a/metrics", UP, at(3), Tally(9, 9, 9))
            store.record_step(at(3), {}, [newer])
            store.record_step(at(3), {}, [newer._replace(at=at(1), raw=Tally(4, 4, 4))])
            assert store.recorder_states() == (newer,)
            again = newer._replace(raw=Tally(10, 10, 9))
            store.record_step(at(3), {}, [again])
            assert store.recorder_states() == (again,)

    def test_record_step_failing_leaves_states_unchanged(self, back_end: BackEnd) -> None:
        state = CounterState("a", UP, at(0), Tally(1, 1))
        with back_end.open() as store:
            store.record_step(at(0), {UP: Tally(1, 1)}, [state])
            before = back_end.content()
            refused = state._replace(replica=None)  # type: ignore[arg-type]
            with pytest.raises(Exception, match=r"(?i)null"):
                store.record_step(at(1), {UP: Tally(2, 2)}, [refused])
            assert back_end.content() == before
