"""The recorder over real pages: what is stored, what is told, and what a bad day does to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from recorded import AVAILABILITY, LATENCY, NOON, Recorded, exposition
from recorded.serving import Serving

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, SpanCounts, Tally
from mm2slo_report.recording.duty import Duty
from mm2slo_report.recording.recorder import Recorder, kept_for
from mm2slo_report.recording.scraping import Target
from mm2slo_report.sources.recorder import RecorderSource
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_report.recording.health import RecorderHealth
    from mm2slo_report.recording.ports import HistoryStore

SECOND = 1000
DAY = 86_400.0
QUARTER = 15 * SECOND


@dataclass
class Clock:
    """Moves when it is told to."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now


@dataclass
class Exporter:
    """Counts ten good events and one bad one a quarter of a minute, unless it is away."""

    serving: Serving
    good: int = 1000
    bad: int = 0

    def count(self) -> None:
        self.good, self.bad = self.good + 10, self.bad + 1
        counts = (self.good, self.good + self.bad, 0)
        self.serving.body = exposition({AVAILABILITY: counts, LATENCY: counts}, started=1.0)

    def restart(self) -> None:
        self.good = self.bad = 0


@dataclass
class Stage:
    """An exporter, a clock and a recorder that is asked every quarter of a minute."""

    exporter: Exporter
    store: HistoryStore
    clock: Clock = field(default_factory=Clock)
    holder: str | None = None
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """A recorder that knows nothing but the store."""
        duty = None if self.holder is None else Duty(self.store, self.holder, 15)
        self.recorder = Recorder(
            [Target.at(self.exporter.serving.address)],
            self.store,
            self.clock,
            keep=kept_for(28 * DAY),
            duty=duty,
            timeout=5,
        )

    def quarters(self, number: int) -> None:
        """So many rounds, each after another quarter of a minute of events."""
        for _ in range(number):
            self.exporter.count()
            self.recorder.tend()
            self.recorder.run_once()
            self.clock.now += QUARTER

    @property
    def health(self) -> RecorderHealth:
        return self.recorder.health


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with Serving() as serving:
        yield Exporter(serving)


@pytest.fixture
def memory() -> Recorded:
    return Recorded()


@pytest.fixture
def stage(exporter: Exporter, memory: Recorded) -> Iterator[Stage]:
    stage = Stage(exporter, memory)
    yield stage
    stage.recorder.close()


def totals(memory: Recorded) -> dict[int, Tally]:
    return {(at - NOON) // MINUTE_MS: each[AVAILABILITY] for at, each in memory.minutes.items()}


def test_each_minute_is_stored_as_it_ends(stage: Stage, memory: Recorded) -> None:
    stage.quarters(9)
    assert totals(memory) == {0: Tally(30, 33, 0), 1: Tally(70, 77, 0)}
    (target,) = stage.health.targets
    assert (target.scrapes, target.failures, target.indicators) == (9, 0, 2)
    assert target.last_success == NOON + 8 * QUARTER
    assert stage.health.recorded_until == NOON + 2 * MINUTE_MS
    assert not stage.health.problems


def test_a_restart_of_the_recorder_loses_and_doubles_nothing(
    stage: Stage, memory: Recorded
) -> None:
    for quarters, killed in [(6, True), (3, False), (1, False), (7, True), (4, True), (8, False)]:
        stage.quarters(quarters)
        if not killed:
            stage.recorder.close()
        stage.start()
    minutes = totals(memory)
    assert list(minutes) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert minutes[6] == Tally(270, 297, 0), "27 rounds after the first"
    assert minutes[7] == Tally(280, 308, 0), "the running minute is stored at the end"


def test_counters_that_began_anew_while_the_recorder_was_away_count_from_zero(
    stage: Stage, memory: Recorded
) -> None:
    stage.quarters(5)
    stage.start()
    stage.exporter.restart()
    stage.clock.now += 10 * MINUTE_MS
    stage.quarters(4)
    stage.recorder.tend()
    assert totals(memory) == {0: Tally(30, 33, 0), 11: Tally(60, 66, 0)}


def test_a_minute_without_an_answer_is_a_gap_and_its_reason_is_told(
    stage: Stage, memory: Recorded
) -> None:
    stage.quarters(4)
    stage.exporter.serving.status = 503
    stage.quarters(8)
    (problem,) = stage.health.problems
    assert problem.endswith("/metrics cannot be scraped: the answer is HTTP 503")
    (target,) = stage.health.targets
    assert (target.failures, target.last_success) == (8, NOON + 3 * QUARTER)
    stage.exporter.serving.status = 200
    stage.quarters(5)
    assert not stage.health.problems
    assert totals(memory) == {0: Tally(30, 33, 0), 3: Tally(150, 165, 0)}


def test_a_store_that_is_away_gets_its_minutes_later(stage: Stage, memory: Recorded) -> None:
    stage.quarters(5)
    memory.away = True
    stage.quarters(12)
    assert stage.health.waiting == 3
    assert list(stage.health.problems) == ["the history cannot be stored: the store is away"]
    memory.away = False
    stage.quarters(4)
    assert not stage.health.problems
    assert {minute: tally.good for minute, tally in totals(memory).items()} == {
        0: 30, 1: 70, 2: 110, 3: 150, 4: 190,
    }  # fmt: skip


def test_a_store_that_is_away_from_the_start_is_asked_again(stage: Stage, memory: Recorded) -> None:
    memory.away = True
    stage.quarters(2)
    assert list(stage.health.problems) == ["the history cannot be stored: the store is away"]
    memory.away = False
    stage.quarters(3)
    assert totals(memory) == {0: Tally(10, 11, 0)}
    assert not stage.health.problems


def test_an_exporter_without_indicators_is_told(stage: Stage) -> None:
    stage.exporter.serving.body = "up 1\n"
    stage.recorder.run_once()
    (problem,) = stage.health.problems
    assert problem.endswith("/metrics publishes no service-level indicators")


def test_of_two_services_one_records_and_the_other_takes_over(
    exporter: Exporter, memory: Recorded
) -> None:
    first = Stage(exporter, memory, holder="first")
    second = Stage(exporter, memory, clock=first.clock, holder="second")
    for _ in range(9):
        second.recorder.tend()
        first.quarters(1)
        second.recorder.run_once()
    assert second.health.recorded_by == "first"
    assert second.health.targets[0].scrapes == 0
    assert second.health.recorded_until == first.health.recorded_until is not None
    first.recorder.close()
    second.quarters(8)
    assert second.health.recorded_by == ""
    assert totals(memory)[3] == Tally(150, 165, 0), "15 quarters, each once"
    second.recorder.close()


def test_a_service_that_records_again_goes_on_from_what_others_stored(
    exporter: Exporter, memory: Recorded
) -> None:
    first = Stage(exporter, memory, holder="first")
    first.quarters(9)
    memory.holder = None  # its lease expired, as when its machine slept
    second = Stage(exporter, memory, clock=first.clock, holder="second")
    second.quarters(8)
    first.recorder.run_once()
    assert first.health.recorded_by == "second"
    second.recorder.close()
    first.quarters(4)
    first.recorder.close()
    assert totals(memory)[4] == Tally(190, 209, 0), "19 rounds after the first"


def test_a_history_that_is_ahead_of_the_clock_is_told(stage: Stage) -> None:
    stage.clock.now = NOON + 3_600_000
    stage.quarters(5)
    stage.clock.now = NOON
    stage.quarters(1)
    (problem,) = stage.health.problems
    assert problem.startswith("the history is 3660 s ahead of the clock: nothing is stored until")


def test_minutes_are_thinned_out_and_hours_forgotten_once_an_hour(
    stage: Stage, memory: Recorded
) -> None:
    stage.quarters(9)
    stage.clock.now = NOON + 3_600_000 + QUARTER
    stage.quarters(9)
    keep = round(63 * DAY * 1000)
    times = [NOON + QUARTER, NOON + 3_600_000 + QUARTER]
    assert memory.thinned == [(each, keep) for each in times]
    three_years = round(3 * 366 * DAY * 1000)
    assert memory.forgotten == [each - three_years for each in times]


def test_a_running_round_ends_when_it_is_told_to(stage: Stage) -> None:
    stage.exporter.serving.hold = threading.Event()
    waiting = threading.Thread(target=stage.recorder.run_once)
    waiting.start()
    assert stage.exporter.serving.reached.wait(20)
    stage.recorder.end()
    waiting.join(4)
    assert not waiting.is_alive()
    assert stage.health.targets[0].failures == 0


def test_in_the_real_store_sources_answer_what_was_counted(
    exporter: Exporter, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "results.db") as store:
        stage = Stage(exporter, store, holder="me")
        stage.quarters(10)
        stage.recorder.close()
        stage.start()
        stage.exporter.restart()
        stage.quarters(11)
        stage.recorder.close()
        source = RecorderSource(store, keep=63 * DAY)
        spans = [
            Span(NOON, NOON + 2 * MINUTE_MS),
            Span(NOON + 2 * MINUTE_MS, NOON + 5 * MINUTE_MS),
            Span(NOON - MINUTE_MS, NOON),
        ]
        counts = source.counts([AVAILABILITY, LATENCY], spans)
        assert (
            counts[AVAILABILITY]
            == counts[LATENCY]
            == {
                spans[0]: SpanCounts(good=70, total=77, minutes=2),
                spans[1]: SpanCounts(good=120, total=132, minutes=3),
                spans[2]: SpanCounts(),
            }
        )
        assert source.known_since([AVAILABILITY]) == {AVAILABILITY: NOON}
        assert source.indicators() == (AVAILABILITY, LATENCY)
        minutes = source.minutes(AVAILABILITY, spans[0])
        assert [(each.at, each.total) for each in minutes] == [(NOON, 33), (NOON + MINUTE_MS, 44)]
