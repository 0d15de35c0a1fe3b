"""One run of a measurement over a simulated flow: what it calls sustained, and what it rejects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mm2slo_cli import perf_bench
from mm2slo_cli.perf_bench import UNLIMITED, Measurement
from mm2slo_core.perf.perf_report import PerfRun
from mm2slo_core.perf.perf_schedule import PerfCell, PerfLoad, PerfMode
from mm2slo_core.perf.perf_statistics import Latencies, bucket_of
from mm2slo_kafka.perf_generator import TICK, PerfSegment
from mm2slo_kafka.perf_reader import ArrivedRecords


@dataclass
class Flow:
    """Copies *capacity* records per second after *delay*, of what a generator of *speed* sends."""

    capacity: float
    speed: float = 100_000
    delay: float = 0.05
    lost_share: float = 0.0
    slip: float = 0.0
    reader_delay: float = 0.0
    on_send: Callable[[float | None], None] = lambda _rate: None
    now_at: float = 1000.0
    free_at: float = 0.0
    number: int = 0
    segments: int = 0
    refused: int = 0
    problem: str = ""
    segment: PerfSegment | None = None
    found: ArrivedRecords = field(default_factory=ArrivedRecords)
    sent_rates: list[float | None] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        return self.number

    def send(self, rate: float | None, seconds: float, most: int | None = None) -> PerfSegment:
        self.sent_rates.append(rate)
        used = self.speed if rate is None else rate
        count = int(used * seconds)
        count = count if most is None else min(count, most)
        start = self.now_at
        segment = self.segment = PerfSegment(self.segments, rate, start, start, count)
        self.segments += 1
        segment.slip = self.slip
        latencies = self.found.latencies.setdefault(segment.number, Latencies())
        self.on_send(rate)
        for index in range(count):
            intended = start + index / used
            segment.sent_by_tick[int(intended / TICK)] += 1
            self.free_at = max(intended, self.free_at) + 1 / self.capacity
            if index % 1000 < self.lost_share * 1000:
                continue
            arrived = self.free_at + self.delay
            latencies.counts[bucket_of(arrived - intended)] += 1
            self.found.by_tick[int(arrived / TICK)] += 1
            self.found.arrived += 1
        self.number += count
        self.now_at = segment.ended = start + count / used
        return segment

    def flush(self) -> int:
        return 0

    def serve(self) -> None:
        pass

    def now(self) -> float:
        return self.now_at

    def look(self) -> ArrivedRecords:
        self.found.delay = self.reader_delay
        return self.found

    def arrived(self) -> int:
        self.now_at = max(self.now_at, self.free_at + self.delay)
        return self.found.arrived

    def forget_delay(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_bench, "_LEFT_SECONDS", 0.0)
    monkeypatch.setattr(perf_bench, "_cpu_times", lambda: None)


def measure(flow: Flow, mode: PerfMode = PerfMode.SUSTAINED, **load: Any) -> PerfRun:
    given = {"rate": UNLIMITED, "seconds": 4.0, "max_bytes": 1e10, **load}
    cell = PerfCell("x", PerfLoad(mode=mode, **given), load.pop("trip", 0.0))
    generator: Any = flow
    measurement = Measurement(cell, generator, generator, lambda _line: None, names_cpu=True)
    try:
        measurement.run()
    except KeyboardInterrupt:
        measurement.interrupted = True
    return measurement.result()


@pytest.mark.parametrize("capacity", [500, 20_000])
def test_highest_rate_is_that_of_the_flow(capacity: float) -> None:
    run = measure(Flow(capacity))
    assert run.problems == []
    assert run.rate == pytest.approx(capacity, rel=0.08)


def test_stated_rate_is_never_exceeded() -> None:
    flow = Flow(50_000)
    run = measure(flow, rate=800.0)
    assert flow.sent_rates
    assert max(each or UNLIMITED for each in flow.sent_rates) == 800
    assert (run.rate, run.limit, run.problems) == (800, "--rate", [])


def test_rate_with_missing_records_is_not_sustained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measurement, "_wait_arrived", lambda *_: True)
    run = measure(Flow(20_000, lost_share=0.016), rate=1000.0)
    assert "no rate was sustained" in run.problems
    assert [each for each in run.problems if "had not arrived" in each]


@pytest.mark.parametrize("mode", [PerfMode.SUSTAINED, PerfMode.DRAIN])
def test_interrupted_search_has_no_rate(mode: PerfMode) -> None:
    calls: list[float | None] = []

    def interrupt(rate: float | None) -> None:
        calls.append(rate)
        if len(calls) == (6 if mode is PerfMode.SUSTAINED else 2):
            raise KeyboardInterrupt

    run = measure(Flow(20_000, on_send=interrupt), mode)
    assert f"interrupted before a {mode} rate was found" in run.problems
    assert run.rate == 0


def test_interrupted_latency_has_what_was_measured() -> None:
    flow = Flow(20_000)

    def interrupt(_rate: float | None) -> None:
        if flow.segments == 4:
            assert flow.segment is not None
            latencies = flow.found.latencies[flow.segment.number]
            latencies.counts[bucket_of(0.05)] += 7
            raise KeyboardInterrupt

    flow.on_send = interrupt
    run = measure(flow, PerfMode.LATENCY, rate=100.0, seconds=10.0)
    assert run.latencies.count in {7, 1000}


def test_latency_of_a_flow_that_keeps_up() -> None:
    run = measure(Flow(20_000), PerfMode.LATENCY, rate=1000.0)
    assert run.problems == []
    assert run.latencies.count == 4000
    assert run.latencies.percentile(99) == pytest.approx(0.05, rel=0.01)
    assert sum(run.sent) == 4000
    assert sum(run.arrived) == pytest.approx(4000, rel=0.03)


def test_latency_above_the_capacity_is_rejected() -> None:
    run = measure(Flow(1000), PerfMode.LATENCY, rate=1200.0, seconds=10.0)
    assert [each for each in run.problems if "the backlog grew by" in each]


def test_slip_and_delay_of_the_measurement_are_rejected() -> None:
    for name, text in (("slip", "the generator was late"), ("reader_delay", "the reader was late")):
        flow = Flow(20_000)
        setattr(flow, name, 0.3)
        problems = measure(flow, PerfMode.LATENCY, rate=100.0).problems
        assert [each for each in problems if each.startswith(text)]


def test_generator_that_is_late_limits_the_rate() -> None:
    assert measure(Flow(20_000, slip=0.3), rate=1000.0).problems == ["no rate was sustained"]


def test_bytes_that_run_out_are_named() -> None:
    for mode, rate in ((PerfMode.DRAIN, UNLIMITED), (PerfMode.SUSTAINED, 5000.0)):
        run = measure(Flow(20_000), mode, rate=rate, max_bytes=1e6)
        assert [each for each in run.problems if each.startswith("--max-bytes ended")], mode
    run = measure(Flow(20_000), PerfMode.LATENCY, rate=1000.0, max_bytes=5e6)
    assert [each for each in run.problems if each.startswith("--max-bytes ended")]


def test_backlog_is_copied_at_the_capacity() -> None:
    run = measure(Flow(20_000), PerfMode.DRAIN)
    assert run.problems == []
    assert run.rate == pytest.approx(20_000, rel=0.02)


def test_flow_as_fast_as_the_generator_has_no_backlog() -> None:
    run = measure(Flow(1e6, speed=20_000), PerfMode.DRAIN)
    assert [each for each in run.problems if each.startswith("no backlog")]


def test_round_trip_is_named_where_a_fetch_can_bring_no_more() -> None:
    run = measure(Flow(11_000), partitions=1)
    assert run.limit == "not known"
    cell = PerfCell("x", PerfLoad(mode=PerfMode.DRAIN, rate=UNLIMITED, partitions=1), 80.0)
    flow: Any = Flow(11_000)
    far = Measurement(cell, flow, flow, lambda _line: None, names_cpu=True)
    far.run()
    assert far.result().limit == "round trip"
