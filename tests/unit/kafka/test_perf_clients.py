"""Generator and reader of a measurement: intended times, slip, and what became of each record."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.perf_generator import HEADER, STAMP, PerfGenerator
from mm2slo_kafka.perf_reader import ArrivedRecords, RecordLedger, steady_clock


class Clock:
    """Time that only pauses move."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.stalls: list[float] = []

    def now(self) -> float:
        return self.at

    def pause(self, seconds: float) -> None:
        self.at += seconds + (self.stalls.pop() if self.stalls else 0.0)


class FakeProducer:
    """Takes all records, but refuses the first *full* ones as a full queue does."""

    def __init__(self, clock: Clock, full: int = 0) -> None:
        self.records: list[tuple[int, float, int, int]] = []
        self._clock = clock
        self._full = full

    def produce(self, topic: str, value: bytes, **options: Any) -> None:
        if self._full:
            self._full -= 1
            raise BufferError
        ((name, stamp),) = options["headers"]
        assert (topic, name, len(value)) == ("t", HEADER, 100)
        intended, number, segment = STAMP.unpack(stamp)
        self.records.append((number, intended, segment, options["partition"]))

    def poll(self, seconds: float) -> None:
        self._clock.at += seconds


def generator_of(clock: Clock, full: int = 0) -> tuple[PerfGenerator, FakeProducer]:
    producer = FakeProducer(clock, full)
    handles = SimpleNamespace(producer=lambda _settings: producer)
    source = cast("ClusterClient", SimpleNamespace(handles=handles))
    generator = PerfGenerator(
        source, "t", partitions=3, record_size=100, now=clock.now, pause=clock.pause
    )
    return generator, producer


def test_records_are_intended_at_equal_distances_whatever_happens() -> None:
    clock = Clock()
    clock.stalls = [0.3]
    generator, producer = generator_of(clock)
    segment = generator.send(100, 2)
    assert [number for number, *_ in producer.records] == list(range(200))
    for number, intended, _, partition in producer.records:
        assert intended == pytest.approx(1000 + number / 100)
        assert partition == number % 3
    assert segment.sent == 200


def test_stall_of_the_generator_is_its_slip() -> None:
    clock = Clock()
    generator, _ = generator_of(clock)
    assert generator.send(100, 1).slip < 0.01
    clock.stalls = [0.3]
    assert generator.send(100, 1).slip == pytest.approx(0.3, abs=0.02)


def test_full_queue_is_slip_as_well() -> None:
    generator, _ = generator_of(Clock(), full=20)
    assert generator.send(100, 1).slip == pytest.approx(0.2, abs=0.02)


def test_segments_and_numbers_go_on() -> None:
    generator, producer = generator_of(Clock())
    generator.send(10, 1)
    generator.send(10, 1, most=3)
    assert generator.number == 13
    assert [segment for *_, segment, _ in producer.records] == [0] * 10 + [1] * 3


def record(number: int, *, partition: int | None = None, intended: float = 1.0) -> Any:
    where = number % 3 if partition is None else partition
    headers = [(HEADER, STAMP.pack(intended, number, 7))]
    return SimpleNamespace(error=lambda: None, headers=lambda: headers, partition=lambda: where)


def ledger_of(*records: Any) -> ArrivedRecords:
    ledger = RecordLedger(partitions=3)
    for each in records:
        ledger.note(each, 1.5)
    return ledger.part


def test_each_record_counts_once() -> None:
    found = ledger_of(record(0), record(1), record(0), record(3))
    assert (found.arrived, found.duplicates, found.reordered, found.moved) == (3, 1, 0, 0)
    assert found.latencies[7].count == 3
    assert found.latencies[7].percentile(50) == pytest.approx(0.5, rel=0.005)
    assert found.by_partition == {0: 3, 1: 1}


def test_earlier_record_of_a_partition_is_out_of_order() -> None:
    assert ledger_of(record(3), record(0), record(6)).reordered == 1
    assert ledger_of(record(3), record(1), record(2)).reordered == 0


def test_record_in_another_partition_has_moved() -> None:
    assert ledger_of(record(0, partition=2)).moved == 1


def test_records_of_others_are_left_out() -> None:
    other = SimpleNamespace(error=lambda: None, headers=lambda: None, partition=lambda: 0)
    assert ledger_of(other).arrived == 0


def test_parts_add_up() -> None:
    total = ArrivedRecords()
    for part in (ledger_of(record(0), record(0)), ledger_of(record(1))):
        total.add(part)
    assert (total.arrived, total.duplicates, total.latencies[7].count) == (2, 1, 2)


def test_clock_does_not_step(monkeypatch: pytest.MonkeyPatch) -> None:
    now = steady_clock(time.time() - time.monotonic())
    first = now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= now() - first < 60
