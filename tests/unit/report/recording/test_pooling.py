"""Totals of replicas, compared with what was really counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import AVAILABILITY, LATENCY

from mm2slo_core.reporting.history import Indicator, Tally
from mm2slo_report.recording.exposition import Page
from mm2slo_report.recording.pooling import Pool

SECOND = 1000


def page(*counts: float, of: Indicator = AVAILABILITY, started: int | None = None) -> Page:
    return Page(tallies={of: Tally(*counts)}, started=started)


def test_a_counter_that_is_new_contributes_nothing_and_then_what_it_grows_by() -> None:
    pool = Pool()
    assert pool.add(1, {"a": page(90, 100, 5)}) == {AVAILABILITY}
    assert pool.totals == {AVAILABILITY: Tally(0, 0, 0)}
    pool.add(2, {"a": page(97, 110, 6)})
    assert pool.totals == {AVAILABILITY: Tally(7, 10, 1)}


def test_a_counter_that_fell_was_reset_and_so_were_those_beside_it() -> None:
    pool = Pool()
    pool.add(1, {"a": page(5, 100, 0)})
    pool.add(2, {"a": page(7, 8, 0)})
    assert pool.totals == {AVAILABILITY: Tally(7, 8, 0)}, (
        "good passed its old value, and started at 0"
    )


def test_a_process_that_began_anew_reset_its_counters_even_if_none_fell() -> None:
    pool = Pool()
    pool.add(1, {"a": page(5, 5, 0, started=1)})
    pool.add(2, {"a": page(9, 9, 0, started=2)})
    assert pool.totals == {AVAILABILITY: Tally(9, 9, 0)}
    pool.add(3, {"a": page(10, 10, 0)})
    assert pool.totals == {AVAILABILITY: Tally(10, 10, 0)}, "a page may not say when it started"


def test_an_indicator_that_is_new_in_a_known_replica_began_at_zero() -> None:
    pool = Pool()
    pool.add(1, {"a": page(1, 1, 0)})
    pool.add(2, {"a": Page({AVAILABILITY: Tally(1, 1, 0), LATENCY: Tally(3, 4, 0)})})
    assert pool.totals[LATENCY] == Tally(3, 4, 0)


def test_an_indicator_that_is_new_to_a_recorder_that_restarts_may_be_old() -> None:
    both = {AVAILABILITY: Tally(1, 1, 0), LATENCY: Tally(3000, 4000, 0)}
    for started, counted in [(None, Tally()), (1, Tally()), (20, Tally(3000, 4000, 0))]:
        pool = Pool()
        pool.add(10, {"a": page(1, 1, 0, started=started)})
        again = Pool(pool.totals, pool.states(["a"]))
        again.add(30, {"a": Page(both, started)})
        assert again.totals[LATENCY] == counted


def test_a_page_that_lacks_an_indicator_for_a_while_loses_none_of_its_events() -> None:
    pool = Pool()
    for at, counts in enumerate([page(1, 1, 0), Page({}), page(6, 8, 0)]):
        pool.add(at, {"a": counts})
    assert pool.totals == {AVAILABILITY: Tally(5, 7, 0)}


def test_replicas_are_averaged_by_growth_so_one_that_comes_or_goes_moves_nothing() -> None:
    pool = Pool()
    pool.add(1, {"a": page(1000, 1000, 0)})
    pool.add(2, {"a": page(1010, 1010, 0), "b": page(5, 5, 0)})
    assert pool.totals[AVAILABILITY] == Tally(10, 10, 0)
    pool.add(3, {"a": page(1020, 1020, 0), "b": page(13, 15, 0)})
    assert pool.totals[AVAILABILITY] == Tally(19, 20, 0), "(10 + 8) / 2 of (10 + 10) / 2"
    pool.add(4, {"b": page(23, 25, 0)})
    assert pool.totals[AVAILABILITY] == Tally(29, 30, 0)


def test_what_a_replica_counted_while_another_stood_for_it_is_not_counted_again() -> None:
    pool = Pool()
    pool.add(10, {"a": page(0, 0, 0), "b": page(0, 0, 0)})
    pool.add(20, {"b": page(10, 10, 0)})
    pool.add(30, {"a": page(20, 20, 0), "b": page(20, 20, 0)})
    assert pool.totals == {AVAILABILITY: Tally(20, 20, 0)}
    pool.add(40, {"b": page(30, 30, 0)})
    pool.add(50, {"a": page(40, 40, 0)})
    assert pool.totals == {AVAILABILITY: Tally(40, 40, 0)}, "half of a's 20 are of b's time"


def test_a_restart_knows_what_each_replica_had_counted_already() -> None:
    pool = Pool()
    pool.add(10, {"a": page(0, 0, 0), "b": page(0, 0, 0)})
    pool.add(20, {"b": page(10, 10, 0)})
    again = Pool(pool.totals, pool.states(["a", "b"]))
    again.add(30, {"a": page(20, 20, 0)})
    assert again.totals == {AVAILABILITY: Tally(20, 20, 0)}, "half of a's 20 are of b's time"


def test_a_new_replica_that_is_alone_leaves_its_time_to_the_one_that_returns() -> None:
    pool = Pool()
    pool.add(10, {"a": page(0, 0, 0)})
    pool.add(20, {"b": page(500, 500, 0)})
    pool.add(30, {"a": page(20, 20, 0)})
    assert pool.totals == {AVAILABILITY: Tally(20, 20, 0)}


def test_a_new_replica_takes_nothing_of_the_time_before_it() -> None:
    pool = Pool()
    pool.add(10, {"a": page(0, 0, 0)})
    pool.add(20, {"b": page(500, 500, 0)})
    pool.add(30, {"a": page(20, 20, 0), "b": page(510, 510, 0)})
    assert pool.totals == {AVAILABILITY: Tally(20, 20, 0)}, "a counted all of it, b the half"
    pool.add(40, {"a": page(30, 30, 0), "b": page(516, 520, 0)})
    assert pool.totals == {AVAILABILITY: Tally(28, 30, 0)}, "from here on both do"


def test_rounds_follow_each_other() -> None:
    pool = Pool()
    pool.add(5, {"a": page(1, 1, 0)})
    with pytest.raises(ValueError, match="a round at 5 does not follow that at 5"):
        pool.add(5, {"a": page(1, 1, 0)})


@dataclass
class Replica:
    """An exporter that counts, and what of its events can be known from outside."""

    raw: Tally = field(default_factory=Tally)
    started: int = 0
    told: Tally | None = None
    """What it said last in its present life; None: nothing yet."""
    known: bool = False
    observed: Tally = field(default_factory=Tally)

    def count(self, good: int, bad: int, unknown: int) -> None:
        self.raw = Tally(
            self.raw.good + good, self.raw.total + good + bad, self.raw.unknown + unknown
        )

    def would_fall(self, good: int, bad: int, unknown: int) -> bool:
        """Whether a restart would show in the next page, after these events."""
        anew = (good, good + bad, unknown)
        return self.told is None or any(new < old for new, old in zip(anew, self.told, strict=True))

    def restart(self) -> None:
        self.raw, self.started, self.told = Tally(), self.started + 1, None

    def scrape(self) -> Page:
        if self.known:
            start = self.told or Tally()
            self.observed = Tally(
                *(
                    have + now - old
                    for have, now, old in zip(self.observed, self.raw, start, strict=True)
                )
            )
        self.told, self.known = self.raw, True
        return Page({AVAILABILITY: self.raw}, started=self.started)


COUNTS = st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(0, 3))
STEP = st.tuples(COUNTS, st.booleans(), st.booleans(), st.booleans())
"""What is counted; whether the exporter restarts, is scraped, and the recorder restarts."""


@given(steps=st.lists(STEP, max_size=40), begins_told=st.booleans())
def test_one_replicas_total_is_every_event_between_its_first_and_last_sample(
    *, steps: list[tuple[tuple[int, int, int], bool, bool, bool]], begins_told: bool
) -> None:
    replica, pool = Replica(), Pool()
    for at, (counts, exporter_restarts, scraped, recorder_restarts) in enumerate(steps, 1):
        # Where pages do not say when they started, a reset must show by a counter that falls.
        if exporter_restarts and (begins_told or (scraped and replica.would_fall(*counts))):
            replica.restart()
        replica.count(*counts)
        if scraped:
            found = replica.scrape()
            pool.add(at, {"a": found if begins_told else replace(found, started=None)})
        if recorder_restarts:
            pool = Pool(pool.totals, pool.states(["a"]))
        assert pool.totals.get(AVAILABILITY, Tally()) == replica.observed


@given(
    st.integers(1, 4).flatmap(
        lambda replicas: st.tuples(
            st.just(replicas),
            st.lists(
                st.tuples(
                    st.lists(COUNTS, min_size=replicas, max_size=replicas),
                    st.lists(st.booleans(), min_size=replicas, max_size=replicas),
                    st.booleans(),
                    st.booleans(),
                ),
                max_size=30,
            ),
        )
    )
)
def test_replicas_that_are_scraped_together_give_the_mean_of_what_each_counted(
    drawn: tuple[int, list[tuple[list[tuple[int, int, int]], list[bool], bool, bool]]],
) -> None:
    number, rounds = drawn
    replicas = {str(each): Replica() for each in range(number)}
    pool = Pool()
    for at, (counts, restarts, scraped, recorder_restarts) in enumerate(rounds, 1):
        for replica, counted, restart in zip(replicas.values(), counts, restarts, strict=True):
            if restart:
                replica.restart()
            replica.count(*counted)
        if scraped:
            pool.add(at, {name: replica.scrape() for name, replica in replicas.items()})
        if recorder_restarts:
            pool = Pool(pool.totals, pool.states(replicas))
    mean = [
        sum(each.observed[column] for each in replicas.values()) / number for column in range(3)
    ]
    assert pool.totals.get(AVAILABILITY, Tally()) == pytest.approx(tuple(mean), abs=1e-9)


GAPS = st.lists(
    st.tuples(st.lists(st.booleans(), min_size=3, max_size=3), st.integers(1, 100)), max_size=40
)


@given(rounds=GAPS, one_is_always_there=st.booleans())
def test_gaps_of_replicas_neither_lose_nor_double_events_of_an_even_stream(
    *, rounds: list[tuple[list[bool], int]], one_is_always_there: bool
) -> None:
    """Ten events a second in each replica, whose counters started at different times."""
    pool, at, first, last = Pool(), 0, None, 0
    for scraped, seconds in rounds:
        at += seconds * SECOND
        there = [name for name, is_there in zip("abc", scraped, strict=True) if is_there]
        if one_is_always_there and "a" not in there:
            there.append("a")
        before = pool.totals.get(AVAILABILITY, Tally())
        if not there:
            continue
        counts = {name: at / 100 + ord(name) * 1000 for name in there}
        pool.add(at, {name: page(count * 0.75, count, 0) for name, count in counts.items()})
        first, last = at if first is None else first, at
        now = pool.totals[AVAILABILITY]
        assert now.total >= before.total
        assert now.good == pytest.approx(now.total * 0.75)
    lived = (last - first) / 100 if first is not None else 0
    total = pool.totals.get(AVAILABILITY, Tally()).total
    assert total <= lived + 1e-6
    if one_is_always_there:
        assert total == pytest.approx(lived)
