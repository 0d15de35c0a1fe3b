"""End and start offsets of one side: when they are read, and what is kept on failure."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import OffsetsRead
from mm2slo_exporter.readers.flow_reader import SideReader
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@dataclass
class Cluster:
    """Returns configured results and records each request with its isolation and timeout."""

    alias: str = "us"
    now: float = 100.0
    ends: dict[TopicPartition, int] = field(default_factory=lambda: {P0: 10})
    stable: int = 8
    start: int = 1
    errors: dict[TopicPartition, ErrorKind] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    asked: list[tuple[str, float]] = field(default_factory=list)

    def end_offsets(
        self,
        partitions: Sequence[TopicPartition],
        isolation: str = "read_uncommitted",
        timeout: float = 0.0,
    ) -> OffsetReading:
        stable = isolation == "read_committed"
        self._note("stable" if stable else "ends", timeout)
        kept = [each for each in partitions if each in self.ends]
        return self._answer({each: self.stable if stable else self.ends[each] for each in kept})

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = 0.0
    ) -> OffsetReading:
        self._note("starts", timeout)
        return self._answer(dict.fromkeys(partitions, self.start))

    def _note(self, what: str, timeout: float) -> None:
        self.asked.append((what, timeout))
        if what in self.down:
            raise KafkaOperationError(
                ErrorKind.UNREACHABLE, cluster="us", operation=what, detail="no answer"
            )

    def _answer(self, found: dict[TopicPartition, int]) -> OffsetReading:
        kept = {here: offset for here, offset in found.items() if here not in self.errors}
        return OffsetReading(kept, dict(self.errors), self.now, self.now + 0.5)

    def taken(self) -> list[str]:
        asked, self.asked = self.asked, []
        return [what for what, _ in asked]


class Side:
    def __init__(self, *, stable_ends: bool = False) -> None:
        self.cluster = Cluster()
        self.clock_step = 0.0
        self.health = CollectionHealth()
        self.observed: list[tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]] = []
        self.reader = SideReader(
            self.cluster,
            self.health,
            starts_every=30.0,
            observe_ends=lambda before, ends: self.observed.append((before, ends)),
            stable_ends=stable_ends,
            timeout=5.0,
            clock=lambda: self.cluster.now + self.clock_step,
            timer=lambda: self.cluster.now,
        )

    def readable(self) -> bool:
        return self.reader.readable

    def read(self, at: float, *partitions: TopicPartition) -> OffsetsRead | None:
        self.cluster.now = at
        self.reader.read(partitions or (P0,))
        return self.reader.newest


def test_round_has_its_times_and_those_of_preceding_round() -> None:
    side = Side()
    assert side.reader.newest is None
    assert not side.readable()
    assert side.read(100.0) == OffsetsRead({P0: 10}, {P0: 1}, {}, 100.0, 100.5, None, None, 100.0)
    assert side.read(105.0) == OffsetsRead({P0: 10}, {P0: 1}, {}, 105.0, 105.5, 100.0, 100.5, 100.0)
    assert side.readable()


def test_end_offsets_of_successful_rounds_are_observed_with_those_before() -> None:
    side = Side()
    side.read(100.0)
    side.cluster.down = {"ends"}
    side.read(105.0)
    side.cluster.down, side.cluster.ends = set(), {P0: 12}
    side.read(110.0)
    assert side.observed == [({}, {P0: 10}), ({P0: 10}, {P0: 12})]


def test_start_offsets_are_read_at_interval_and_when_partitions_change() -> None:
    side = Side()
    asked = []
    for at in (100.0, 105.0, 129.9, 130.0, 135.0):
        side.read(at)
        asked.append(side.cluster.taken())
    once = ["ends"]
    assert asked == [["ends", "starts", "ends"], once, once, ["starts", "ends"], once]
    side.cluster.ends[P1] = 3
    side.read(140.0, P0, P1)
    assert side.cluster.taken() == ["ends", "starts", "ends"]


def test_start_offsets_are_read_at_interval_after_clock_was_set_back() -> None:
    side = Side()
    side.read(100.0)
    side.clock_step = -3600.0
    side.cluster.taken()
    side.read(130.0)
    assert side.cluster.taken() == ["starts", "ends"]


def test_start_offset_of_replaced_log_is_read_again_with_its_end() -> None:
    """The source's log start was 4900 until its next reading: a lag of -4,900 records."""
    side = Side()
    side.cluster.ends, side.cluster.start = {P0: 5000}, 4900
    side.read(100.0)
    side.cluster.ends, side.cluster.start = {P0: 0}, 0
    side.cluster.taken()
    found = side.read(105.0)
    assert side.cluster.taken() == ["ends", "starts", "ends"]
    assert found is not None
    assert (found.ends, found.starts) == ({P0: 0}, {P0: 0})


def test_start_offset_of_log_that_is_deleted_is_read_again_when_it_returns() -> None:
    side = Side()
    side.cluster.ends, side.cluster.start = {P0: 5000, P1: 7}, 4
    side.read(100.0, P0, P1)
    ends = side.cluster.ends.copy()
    del side.cluster.ends[P0]
    side.cluster.taken()
    found = side.read(105.0, P0, P1)
    assert found is not None
    assert (found.ends, found.starts) == ({P1: 7}, {P1: 4})
    assert side.cluster.taken() == ["ends"]
    side.cluster.ends, side.cluster.start = {**ends, P0: 6000}, 0
    found = side.read(110.0, P0, P1)
    assert found is not None
    assert (found.ends, found.starts) == ({P0: 6000, P1: 7}, {P0: 0, P1: 4})


def test_replaced_log_that_cannot_be_read_again_drops_out_alone() -> None:
    """As of a topic that was created again, and is deleted between two requests."""
    side = Side()
    side.cluster.ends = {P0: 5000, P1: 7}
    side.read(100.0, P0, P1)
    side.cluster.ends = {P0: 3, P1: 8}
    side.cluster.down = {"starts"}
    found = side.read(105.0, P0, P1)
    assert side.readable()
    assert found is not None
    assert (found.ends, found.starts) == ({P1: 8}, {P1: 1})
    side.cluster.down = set()
    found = side.read(110.0, P0, P1)
    assert found is not None
    assert (found.ends, found.starts) == ({P0: 3, P1: 8}, {P0: 1, P1: 1})


def test_stable_ends_are_read_before_high_watermarks() -> None:
    side = Side(stable_ends=True)
    found = side.read(100.0)
    assert side.cluster.taken() == ["stable", "ends", "starts", "stable", "ends"]
    assert found is not None
    assert (found.stable_ends, found.ends) == ({P0: 8}, {P0: 10})


def test_failed_round_keeps_newest_offsets_and_is_unreadable() -> None:
    side = Side()
    before = side.read(100.0)
    side.cluster.down = {"ends"}
    assert side.read(105.0) is before
    assert not side.readable()
    side.cluster.down = set()
    found = side.read(110.0)
    assert side.readable()
    assert found is not None
    assert (found.previous_requested_at, found.requested_at) == (100.0, 110.0)
    assert side.health.report().errors == {("us", CollectionStage.END_OFFSETS, "unreachable"): 1}


def test_failed_start_offsets_are_retried_in_next_round_and_fail_no_ends() -> None:
    side = Side()
    side.read(100.0)
    side.cluster.down = {"starts"}
    side.cluster.ends[P0] = 12
    found = side.read(130.0)
    assert side.readable()
    assert found is not None
    assert (found.ends, found.starts) == ({P0: 12}, {P0: 1})
    side.cluster.down = set()
    side.cluster.taken()
    side.read(131.0)
    assert side.cluster.taken() == ["starts", "ends"]


def test_ends_fail_in_an_outage_that_starts_when_log_starts_are_due() -> None:
    side = Side()
    side.read(100.0)
    side.cluster.down = {"starts", "ends"}
    for at in (130.0, 131.0, 132.0):
        side.read(at)
        assert not side.readable()
    errors = side.health.report().errors
    assert errors["us", CollectionStage.END_OFFSETS, "unreachable"] == 3
    assert errors["us", CollectionStage.START_OFFSETS, "unreachable"] == 1


def test_timeout_after_failure_is_short_except_every_30_seconds() -> None:
    side = Side()
    side.cluster.down = {"ends"}
    timeouts = []
    for at in (100.0, 101.0, 102.0, 129.0, 130.0, 131.0):
        side.read(at)
        timeouts.append(side.cluster.asked[-1][1])
    assert timeouts == [5.0, 1.0, 1.0, 1.0, 5.0, 1.0]
    side.cluster.down = set()
    side.read(132.0)
    side.read(133.0)
    assert side.cluster.asked[-1] == ("ends", 5.0)


def test_partition_errors_are_counted_each_round_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    side = Side()
    side.cluster.ends[P1] = 3
    side.cluster.errors = {P1: ErrorKind.UNREACHABLE}
    for at in (100.0, 105.0, 110.0):
        found = side.read(at, P0, P1)
    assert found is not None
    assert found.ends == {P0: 10}
    assert side.readable()
    assert side.health.report().errors[("us", CollectionStage.END_OFFSETS, "unreachable")] == 3
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count(f"reading end_offsets of {P1} on cluster us failed (unreachable)") == 1


def test_side_without_partitions_is_readable_without_requests() -> None:
    side = Side()
    side.reader.read(())
    assert side.cluster.asked == []
    assert side.readable()
    assert side.reader.newest == OffsetsRead(requested_at=100.0, answered_at=100.0)
