"""The recorder over real pages: stored minutes, health, restarts and outages."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from recorder_fakes import AVAILABILITY, LATENCY, NOON, RecordedHistory, exposition
from recorder_fakes.fake_exporter import FakeExporter

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import STEP_MS, SpanCounts, Tally
from mm2slo_report.recording.exporter_scraper import ScrapeTarget
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.recorder_history import (
    HistoryStore,
    RecorderHealth,
    RecorderLease,
    RecorderSource,
)
from mm2slo_store.store import Store

SECOND = 1000
DAY = 86_400.0
QUARTER = 15 * SECOND


@dataclass
class Clock:
    """A clock that tests set."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now


@dataclass
class Exporter:
    """An exporter that counts ten good events and a bad one every 15 s."""

    serving: FakeExporter
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
    """An exporter, a clock and a recorder that scrapes every 15 s."""

    exporter: Exporter
    store: HistoryStore
    clock: Clock = field(default_factory=Clock)
    holder: str | None = None
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start a recorder from the store."""
        lease = None if self.holder is None else RecorderLease(self.store, self.holder, 15)
        self.recorder = Recorder(
            [ScrapeTarget.at(self.exporter.serving.address)],
            self.store,
            self.clock,
            lease=lease,
            timeout=5,
        )

    def quarters(self, number: int) -> None:
        """Run *number* scrape rounds, 15 s apart."""
        for _ in range(number):
            self.exporter.count()
            self.recorder.run_once()
            self.clock.now += QUARTER

    @property
    def health(self) -> RecorderHealth:
        return self.recorder.health


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with FakeExporter() as serving:
        yield Exporter(serving)


@pytest.fixture
def memory() -> RecordedHistory:
    return RecordedHistory()


@pytest.fixture
def stage(exporter: Exporter, memory: RecordedHistory) -> Iterator[Stage]:
    stage = Stage(exporter, memory)
    yield stage
    stage.recorder.close()


def steps(memory: RecordedHistory) -> dict[int, Tally]:
    """Counts by the number of the step; the first one starts at noon."""
    return {
        (end - NOON) // STEP_MS - 1: each[AVAILABILITY]
        for end, each in memory.recorded.items()
        if each
    }


def test_recorder_stores_each_step_as_it_ends(stage: Stage, memory: RecordedHistory) -> None:
    stage.quarters(20)
    before = stage.health
    assert before.recorded_until is None
    stage.quarters(1)
    assert steps(memory) == {0: Tally(190, 209, 0)}
    stage.quarters(20)
    assert steps(memory) == {0: Tally(190, 209, 0), 1: Tally(200, 220, 0)}
    (target,) = stage.health.targets
    assert (target.scrapes, target.failures, target.indicators) == (41, 0, 2)
    assert stage.health.recorded_until == NOON + 2 * STEP_MS
    assert not stage.health.problems


def test_recorder_restart_loses_and_duplicates_no_events(
    stage: Stage, memory: RecordedHistory
) -> None:
    for quarters, killed in [(6, True), (3, False), (1, False), (17, True), (4, True), (15, False)]:
        stage.quarters(quarters)
        if not killed:
            stage.recorder.close()
        stage.start()
    assert steps(memory) == {
        0: Tally(190, 209, 0),
        1: Tally(200, 220, 0),
        2: Tally(60, 66, 0),
    }, "45 rounds after the first; the running step is stored at the end"


def test_recorder_down_for_more_than_a_step_leaves_it_unmeasured(
    stage: Stage, memory: RecordedHistory
) -> None:
    stage.quarters(5)
    stage.recorder.close()
    stage.start()
    stage.clock.now += 2 * STEP_MS
    stage.quarters(21)
    stage.recorder.close()
    assert {number: each.good for number, each in steps(memory).items()} == {0: 40, 2: 140, 3: 60}


def test_counter_reset_while_recorder_is_down_counts_from_zero(
    stage: Stage, memory: RecordedHistory
) -> None:
    stage.quarters(5)
    stage.recorder.close()
    stage.start()
    stage.exporter.restart()
    stage.clock.now += 60 * SECOND
    stage.quarters(4)
    stage.recorder.close()
    assert steps(memory) == {0: Tally(80, 88, 0)}


def test_failed_scrapes_are_reported_and_counted_later(
    stage: Stage, memory: RecordedHistory
) -> None:
    stage.quarters(4)
    stage.exporter.serving.status = 503
    stage.quarters(8)
    (problem,) = stage.health.problems
    assert problem.endswith("/metrics cannot be scraped: HTTP 503")
    (target,) = stage.health.targets
    assert (target.failures, target.scrapes) == (8, 12)
    stage.exporter.serving.status = 200
    stage.quarters(9)
    assert not stage.health.problems
    assert steps(memory) == {0: Tally(190, 209, 0)}


def test_store_down_steps_are_stored_later(stage: Stage, memory: RecordedHistory) -> None:
    stage.quarters(5)
    memory.unavailable = True
    stage.quarters(42)
    assert list(stage.health.problems) == ["the history cannot be stored: the store is unavailable"]
    assert steps(memory) == {0: Tally(30, 33, 0)}
    memory.unavailable = False
    stage.quarters(4)
    assert not stage.health.problems
    assert {step: tally.good for step, tally in steps(memory).items()} == {0: 190, 1: 200, 2: 80}


def test_store_down_at_start_is_retried(stage: Stage, memory: RecordedHistory) -> None:
    memory.unavailable = True
    stage.quarters(2)
    assert list(stage.health.problems) == ["the history cannot be stored: the store is unavailable"]
    memory.unavailable = False
    stage.quarters(3)
    stage.recorder.close()
    assert steps(memory) == {0: Tally(20, 22, 0)}
    assert not stage.health.problems


def test_exporter_without_indicators_is_reported(stage: Stage) -> None:
    stage.exporter.serving.body = "up 1\n"
    stage.recorder.run_once()
    (problem,) = stage.health.problems
    assert problem.endswith("/metrics exposes no service-level indicators")


def test_two_services_one_records_and_the_other_takes_over(
    exporter: Exporter, memory: RecordedHistory
) -> None:
    first = Stage(exporter, memory, holder="first")
    second = Stage(exporter, memory, clock=first.clock, holder="second")
    for _ in range(21):
        first.quarters(1)
        second.recorder.run_once()
    assert second.health.recorded_by == "first"
    assert second.health.targets[0].scrapes == 0
    assert second.health.recorded_until == first.health.recorded_until == NOON + STEP_MS
    first.recorder.close()
    second.quarters(20)
    assert second.health.recorded_by == ""
    assert steps(memory) == {0: Tally(190, 209, 0), 1: Tally(200, 220, 0)}, "each event once"
    second.recorder.close()


def test_service_that_regains_the_lease_continues_from_the_store(
    exporter: Exporter, memory: RecordedHistory
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
    assert steps(memory) == {0: Tally(190, 209, 0), 1: Tally(10, 11, 0)}, "20 rounds, each once"


def test_history_ahead_of_the_clock_is_reported(stage: Stage) -> None:
    stage.clock.now = NOON + 3_600_000
    stage.quarters(5)
    stage.clock.now = NOON
    stage.quarters(1)
    (problem,) = stage.health.problems
    assert problem.startswith("the history is 3600 s ahead of the clock: nothing is stored until")


def test_run_once_applies_retention_once_an_hour(stage: Stage, memory: RecordedHistory) -> None:
    stage.quarters(9)
    stage.clock.now = NOON + 3_600_000 + QUARTER
    stage.quarters(9)
    kept = round(400 * DAY * 1000)
    assert memory.forgotten == [NOON - kept, NOON + 3_600_000 + QUARTER - kept]


def test_end_interrupts_a_running_round(stage: Stage) -> None:
    stage.exporter.serving.hold = threading.Event()
    thread = threading.Thread(target=stage.recorder.run_once)
    thread.start()
    assert stage.exporter.serving.reached.wait(20)
    stage.recorder.end()
    thread.join(4)
    assert not thread.is_alive()
    assert stage.health.targets[0].failures == 0


def test_recorder_source_returns_the_recorded_counts(exporter: Exporter, tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        stage = Stage(exporter, store, holder="me")
        stage.quarters(30)
        stage.recorder.close()
        stage.start()
        stage.exporter.restart()
        stage.quarters(31)
        stage.recorder.close()
        source = RecorderSource(store)
        spans = [
            Span(NOON, NOON + 2 * STEP_MS),
            Span(NOON + 2 * STEP_MS, NOON + 4 * STEP_MS),
            Span(NOON - STEP_MS, NOON),
        ]
        counts = source.counts([AVAILABILITY, LATENCY], spans)
        assert (
            counts[AVAILABILITY]
            == counts[LATENCY]
            == {
                spans[0]: SpanCounts(good=390, total=429, minutes=10),
                spans[1]: SpanCounts(good=210, total=231, minutes=10),
                spans[2]: SpanCounts(),
            }
        )
        assert source.known_since([AVAILABILITY]) == {AVAILABILITY: NOON}
        assert source.indicators() == (AVAILABILITY, LATENCY)
        minutes = source.steps(AVAILABILITY, spans[0])
        assert [(each.at, each.total) for each in minutes] == [(NOON, 209), (NOON + STEP_MS, 220)]
