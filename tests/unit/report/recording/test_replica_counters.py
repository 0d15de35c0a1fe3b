"""Totals over replicas, compared with the events that were counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder_fakes import AVAILABILITY, LATENCY

from mm2slo_core.reporting.step_counts import Indicator, Tally
from mm2slo_report.recording.scraped_counters import Page, ReplicaCounters, add_tallies
from mm2slo_store.sli_history import CounterState

SECOND = 1000


class Totals:
    """The sums of what replicas counted, over restarts of the recorder."""

    def __init__(self, before: Totals | None = None) -> None:
        self.tallies: dict[Indicator, Tally] = {} if before is None else before.tallies
        self.states: dict[tuple[str, Indicator], CounterState] = (
            {} if before is None else before.states
        )
        self.counters = ReplicaCounters(self.states.values())

    def add(self, at: int, pages: Mapping[str, Page]) -> set[Indicator]:
        """Add a round; returns the measured indicators."""
        found = self.counters.add(at, pages)
        for each, increase in found.items():
            self.tallies[each] = add_tallies(self.tallies.get(each, Tally()), increase)
        self.states |= {(each.replica, each.indicator): each for each in self.counters.states}
        return set(found)


def page(*counts: float, of: Indicator = AVAILABILITY, started: int | None = None) -> Page:
    return Page(tallies={of: Tally(*counts)}, started=started)


def test_add_new_counter_counts_only_its_increase() -> None:
    totals = Totals()
    assert totals.add(1, {"a": page(90, 100, 5)}) == set()
    assert totals.add(2, {"a": page(97, 110, 6)}) == {AVAILABILITY}
    assert totals.tallies == {AVAILABILITY: Tally(7, 10, 1)}


def test_add_one_fallen_counter_resets_all_three() -> None:
    totals = Totals()
    totals.add(1, {"a": page(5, 100, 0)})
    totals.add(2, {"a": page(7, 8, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(7, 8, 0)}, (
        "good passed its old value, and started at 0"
    )


def test_add_restarted_process_resets_counters_that_did_not_fall() -> None:
    totals = Totals()
    totals.add(1, {"a": page(5, 5, 0, started=1)})
    totals.add(2, {"a": page(9, 9, 0, started=2)})
    assert totals.tallies == {AVAILABILITY: Tally(9, 9, 0)}
    totals.add(3, {"a": page(10, 10, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(10, 10, 0)}, (
        "a page may lack the process start time"
    )


def test_add_new_indicator_of_known_replica_starts_at_zero() -> None:
    totals = Totals()
    totals.add(1, {"a": page(1, 1, 0)})
    totals.add(2, {"a": Page({AVAILABILITY: Tally(1, 1, 0), LATENCY: Tally(3, 4, 0)})})
    assert totals.tallies[LATENCY] == Tally(3, 4, 0)


def test_add_indicator_new_after_recorder_restart_may_be_old() -> None:
    both = {AVAILABILITY: Tally(1, 1, 0), LATENCY: Tally(3000, 4000, 0)}
    for started, counted in [(None, Tally()), (1, Tally()), (20, Tally(3000, 4000, 0))]:
        totals = Totals()
        totals.add(10, {"a": page(1, 1, 0, started=started)})
        again = Totals(totals)
        again.add(30, {"a": Page(both, started)})
        assert again.tallies.get(LATENCY, Tally()) == counted


def test_add_indicator_missing_for_a_while_loses_no_events() -> None:
    totals = Totals()
    for at, counts in enumerate([page(1, 1, 0), Page({}), page(6, 8, 0)], 1):
        totals.add(at, {"a": counts})
    assert totals.tallies == {AVAILABILITY: Tally(5, 7, 0)}


def test_add_averages_increases_when_replicas_come_and_go() -> None:
    totals = Totals()
    totals.add(1, {"a": page(1000, 1000, 0)})
    totals.add(2, {"a": page(1010, 1010, 0), "b": page(5, 5, 0)})
    assert totals.tallies[AVAILABILITY] == Tally(10, 10, 0)
    totals.add(3, {"a": page(1020, 1020, 0), "b": page(13, 15, 0)})
    assert totals.tallies[AVAILABILITY] == Tally(19, 20, 0), "(10 + 8) / 2 of (10 + 10) / 2"
    totals.add(4, {"b": page(23, 25, 0)})
    assert totals.tallies[AVAILABILITY] == Tally(29, 30, 0)


def test_add_returning_replica_is_not_counted_twice() -> None:
    totals = Totals()
    totals.add(10, {"a": page(0, 0, 0), "b": page(0, 0, 0)})
    totals.add(20, {"b": page(10, 10, 0)})
    totals.add(30, {"a": page(20, 20, 0), "b": page(20, 20, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(20, 20, 0)}
    totals.add(40, {"b": page(30, 30, 0)})
    totals.add(50, {"a": page(40, 40, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(40, 40, 0)}, "half of a's 20 are of b's time"


def test_add_after_recorder_restart_counts_each_replica_once() -> None:
    totals = Totals()
    totals.add(10, {"a": page(0, 0, 0), "b": page(0, 0, 0)})
    totals.add(20, {"b": page(10, 10, 0)})
    again = Totals(totals)
    again.add(30, {"a": page(20, 20, 0)})
    assert again.tallies == {AVAILABILITY: Tally(20, 20, 0)}, "half of a's 20 are of b's time"


def test_add_new_replica_alone_leaves_the_gap_to_a_returning_one() -> None:
    totals = Totals()
    totals.add(10, {"a": page(0, 0, 0)})
    totals.add(20, {"b": page(500, 500, 0)})
    totals.add(30, {"a": page(20, 20, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(20, 20, 0)}


def test_add_new_replica_does_not_count_before_its_first_sample() -> None:
    totals = Totals()
    totals.add(10, {"a": page(0, 0, 0)})
    totals.add(20, {"b": page(500, 500, 0)})
    totals.add(30, {"a": page(20, 20, 0), "b": page(510, 510, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(20, 20, 0)}, "a counted all of it, b half of it"
    totals.add(40, {"a": page(30, 30, 0), "b": page(516, 520, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(28, 30, 0)}, "from here on both count all"


@pytest.mark.parametrize("started", [250, None], ids=["start time", "counters fall"])
def test_add_replica_that_restarted_unseen_leaves_the_gap_to_the_other_one(
    started: int | None,
) -> None:
    """The recorder was away for three minutes of 300 events; a counted 160 of them, b all."""
    totals, second = Totals(), SECOND
    first = None if started is None else 1
    totals.add(60 * second, {"a": page(500, 500, 0, started=first), "b": page(60, 60, 0)})
    totals.add(90 * second, {"a": page(530, 530, 0, started=first), "b": page(90, 90, 0)})
    at = None if started is None else started * second
    totals.add(270 * second, {"a": page(20, 20, 0, started=at), "b": page(270, 270, 0)})
    totals.add(360 * second, {"a": page(110, 110, 0, started=at), "b": page(360, 360, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(300, 300, 0)}


def test_add_replica_that_restarted_leaves_the_gap_to_one_that_was_away_longer() -> None:
    totals = Totals()
    totals.add(10, {"a": page(0, 0, 0, started=1), "b": page(0, 0, 0)})
    totals.add(20, {"a": page(10, 10, 0, started=1)})
    totals.add(60, {"a": page(5, 5, 0, started=55), "b": page(50, 50, 0)})
    assert totals.tallies == {AVAILABILITY: Tally(50, 50, 0)}


def test_add_replicas_that_all_restarted_count_what_the_first_of_them_shows() -> None:
    totals = Totals()
    totals.add(10, {"a": page(7, 7, 0, started=1), "b": page(7, 7, 0, started=2)})
    totals.add(60, {"a": page(5, 5, 0, started=55), "b": page(20, 20, 0, started=40)})
    assert totals.tallies == {AVAILABILITY: Tally(20, 20, 0)}


def test_add_round_not_after_the_previous_one_is_refused() -> None:
    totals = Totals()
    totals.add(5, {"a": page(1, 1, 0)})
    with pytest.raises(ValueError, match="scrape round at 5 is not after the previous one at 5"):
        totals.add(5, {"a": page(1, 1, 0)})


@dataclass
class Replica:
    """An exporter that counts, and those of its events that scrapes can show."""

    raw: Tally = field(default_factory=Tally)
    started: int = 0
    """Another one after each restart; long before the scrapes."""
    exposed: Tally | None = None
    """Its last exposed counters since its start; None: none yet."""
    known: bool = False
    observed: Tally = field(default_factory=Tally)

    def count(self, good: int, bad: int, unknown: int) -> None:
        self.raw = Tally(
            self.raw.good + good, self.raw.total + good + bad, self.raw.unknown + unknown
        )

    def would_fall(self, good: int, bad: int, unknown: int) -> bool:
        """Whether a restart would show in the next page, after these events."""
        restarted = (good, good + bad, unknown)
        return self.exposed is None or any(
            new < old for new, old in zip(restarted, self.exposed, strict=True)
        )

    def restart(self) -> None:
        self.raw, self.started, self.exposed = Tally(), self.started - 1, None

    def scrape(self) -> Page:
        if self.known:
            start = self.exposed or Tally()
            self.observed = Tally(
                *(
                    have + now - old
                    for have, now, old in zip(self.observed, self.raw, start, strict=True)
                )
            )
        self.exposed, self.known = self.raw, True
        return Page({AVAILABILITY: self.raw}, started=self.started)


COUNTS = st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(0, 3))
STEP = st.tuples(COUNTS, st.booleans(), st.booleans(), st.booleans())
"""What is counted; whether the exporter restarts, is scraped, and the recorder restarts."""


@given(steps=st.lists(STEP, max_size=40), has_start_time=st.booleans())
def test_totals_of_one_replica_count_every_event_between_its_samples(
    *, steps: list[tuple[tuple[int, int, int], bool, bool, bool]], has_start_time: bool
) -> None:
    replica, totals = Replica(), Totals()
    for at, (counts, exporter_restarts, scraped, recorder_restarts) in enumerate(steps, 1):
        # Without a process start time, only a falling counter shows a reset.
        if exporter_restarts and (has_start_time or (scraped and replica.would_fall(*counts))):
            replica.restart()
        replica.count(*counts)
        if scraped:
            found = replica.scrape()
            totals.add(at, {"a": found if has_start_time else replace(found, started=None)})
        if recorder_restarts:
            totals = Totals(totals)
        assert totals.tallies.get(AVAILABILITY, Tally()) == replica.observed


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
def test_totals_of_replicas_scraped_together_are_their_mean(
    drawn: tuple[int, list[tuple[list[tuple[int, int, int]], list[bool], bool, bool]]],
) -> None:
    """Without those that restarted, if one did not."""
    number, rounds = drawn
    replicas = {str(each): Replica() for each in range(number)}
    totals, expected = Totals(), [0.0, 0.0, 0.0]
    for at, (counts, restarts, scraped, recorder_restarts) in enumerate(rounds, 1):
        for replica, counted, restart in zip(replicas.values(), counts, restarts, strict=True):
            if restart:
                replica.restart()
            replica.count(*counted)
        if scraped:
            live = [each for each in replicas.values() if each.exposed is not None]
            shown = live or list(replicas.values())
            before = [each.observed for each in shown]
            totals.add(at, {name: replica.scrape() for name, replica in replicas.items()})
            for old, replica in zip(before, shown, strict=True):
                for column in range(3):
                    expected[column] += (replica.observed[column] - old[column]) / len(shown)
        if recorder_restarts:
            totals = Totals(totals)
    assert totals.tallies.get(AVAILABILITY, Tally()) == pytest.approx(tuple(expected), abs=1e-9)


GAPS = st.lists(
    st.tuples(st.lists(st.booleans(), min_size=3, max_size=3), st.integers(1, 100)), max_size=40
)


@given(rounds=GAPS, one_is_always_present=st.booleans())
def test_totals_with_gaps_neither_lose_nor_duplicate_events(
    *, rounds: list[tuple[list[bool], int]], one_is_always_present: bool
) -> None:
    """Ten events a second in each replica, whose counters started at different times."""
    totals, at, first, last = Totals(), 0, None, 0
    for scraped, seconds in rounds:
        at += seconds * SECOND
        there = [name for name, is_there in zip("abc", scraped, strict=True) if is_there]
        if one_is_always_present and "a" not in there:
            there.append("a")
        before = totals.tallies.get(AVAILABILITY, Tally())
        if not there:
            continue
        counts = {name: at / 100 + ord(name) * 1000 for name in there}
        totals.add(at, {name: page(count * 0.75, count, 0) for name, count in counts.items()})
        first, last = at if first is None else first, at
        now = totals.tallies.get(AVAILABILITY, Tally())
        assert now.total >= before.total
        assert now.good == pytest.approx(now.total * 0.75)
    lived = (last - first) / 100 if first is not None else 0
    total = totals.tallies.get(AVAILABILITY, Tally()).total
    assert total <= lived + 1e-6
    if one_is_always_present:
        assert total == pytest.approx(lived)
