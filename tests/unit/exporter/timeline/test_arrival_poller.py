"""Pace, comparison and limits of the reads for arrival times."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pytest

from mm2slo_core import topology
from mm2slo_core.cluster_writes import MAX_PARTITIONS
from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.timeline.arrival_poller import ArrivalPoller, FlowArrivals
from mm2slo_exporter.timeline.flow_writer import ClusterWriter
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation, OffsetReading
from mm2slo_kafka.record_producer import DeliveryResult

POLL = 5.0


class FakeReader:
    """Ends grow by one per read; a read takes `response` seconds."""

    alias = "eu"

    def __init__(self) -> None:
        self.now = 100.0
        self.response = 0.02
        self.reads: list[tuple[TopicPartition, ...]] = []
        self.errors: dict[TopicPartition, ErrorKind] = {}
        self.failing = False

    def end_offsets(
        self,
        partitions: Sequence[TopicPartition],
        isolation: Isolation = "read_uncommitted",
        timeout: float = 10.0,
    ) -> OffsetReading:
        """See `ClusterClient`."""
        assert isolation == "read_uncommitted"
        assert timeout <= POLL
        self.reads.append(tuple(partitions))
        if self.failing:
            raise KafkaOperationError(
                ErrorKind.TIMEOUT, cluster="eu", operation="reading", detail="no answer"
            )
        requested, self.now = self.now, self.now + self.response
        known = {each: len(self.reads) for each in partitions if each not in self.errors}
        return OffsetReading(known, dict(self.errors), requested, self.now)

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = 10.0
    ) -> OffsetReading:
        """See `ClusterClient`."""
        raise NotImplementedError


class Flow:
    """See `FlowArrivals`; each comparison gives one record."""

    def __init__(self, *topics: str, count: int = 1) -> None:
        self.partitions = tuple(TopicPartition(name, n) for name in topics for n in range(count))
        self.compared: list[tuple[OffsetReading, OffsetReading]] = []

    def records(self, before: OffsetReading, now: OffsetReading) -> Iterator[WatermarkRecord]:
        self.compared.append((before, now))
        yield WatermarkRecord(
            flow=topology.Flow("us", "eu"),
            side=Side.TARGET,
            topic=self.partitions[0].topic,
            topic_id=None,
            isolation="read_uncommitted",
            times=PollTimes(now.requested_at, now.answered_at),
            partitions=(0,),
            ends=(1,),
        )


class Writer:
    """See `ClusterWriter`."""

    def __init__(self) -> None:
        self.leads = True
        self.sent: list[tuple[CollectionStage, bytes]] = []
        self.on_delivery: Callable[[DeliveryResult], None] | None = None

    def can_write(self, stage: CollectionStage) -> bool:
        assert stage is CollectionStage.ARRIVALS
        return self.leads

    def send(
        self,
        stage: CollectionStage,
        key: bytes,
        value: bytes | None,
        on_delivery: Callable[[DeliveryResult], None],
    ) -> None:
        """See `ClusterWriter`."""
        del value
        self.sent.append((stage, key))
        self.on_delivery = on_delivery


class Scene:
    """A poller whose time passes between reads as it asks for."""

    def __init__(self, *flows: Flow) -> None:
        self.reader, self.writer, self.health = FakeReader(), Writer(), CollectionHealth()
        self.poller = ArrivalPoller(
            self.reader,
            cast("ClusterWriter", self.writer),
            self.health,
            poll_interval=POLL,
            cpu_clock=lambda: 0.0,
        )
        self.poller._is_started = True  # tests call `read`
        for flow in flows:
            self.poller.add(cast("FlowArrivals", flow))

    def read(self, times: int = 1) -> float:
        interval = 0.0
        for _ in range(times):
            started = self.reader.now
            interval = self.poller.read()
            self.reader.now = max(self.reader.now, started + interval)
        return interval


def test_partitions_of_all_flows_are_read_once_and_compared_with_the_read_before() -> None:
    one, two = Flow("us.orders", "shared"), Flow("shared")
    scene = Scene(one, two)
    assert scene.read(2) == 0.2
    assert scene.reader.reads[-1] == (TopicPartition("us.orders", 0), TopicPartition("shared", 0))
    ((before, now),) = one.compared
    assert (before.requested_at, now.answered_at) == pytest.approx((100.0, 100.22))
    assert two.compared == one.compared
    assert scene.writer.sent == [
        (CollectionStage.ARRIVALS, b"us-to-eu/target/us.orders"),
        (CollectionStage.ARRIVALS, b"us-to-eu/target/shared"),
    ]


@pytest.mark.parametrize(
    ("response", "count", "expected"),
    [
        (0.02, 1_000, 0.22),
        (0.1, 1_000, 0.30),
        (0.2, 1_000, 0.40),
        (0.4, 1, 0.8),
        (0.02, 4_000, 0.82),
    ],
)
def test_published_bracket_is_interval_and_response_time(
    response: float, count: int, expected: float
) -> None:
    scene = Scene(Flow("us.orders", count=count))
    scene.reader.response = response
    assert scene.poller.bracket is None
    scene.read(100)
    assert scene.poller.bracket == pytest.approx(expected, rel=0.01)


def test_only_the_replica_that_writes_reads() -> None:
    scene = Scene(flow := Flow("us.orders"))
    scene.writer.leads = False
    scene.read(2)
    assert (scene.reader.reads, scene.poller.bracket) == ([], None)
    scene.writer.leads = True
    scene.read(2)
    assert len(flow.compared) == 1


@pytest.mark.parametrize("count", [0, MAX_PARTITIONS + 1])
def test_nothing_is_read_without_partitions_or_above_their_limit(count: int) -> None:
    scene = Scene(Flow("us.orders", count=count))
    scene.read(2)
    assert (scene.reader.reads, scene.poller.bracket) == ([], POLL)


def test_limit_holds_for_all_flows_together_and_their_changes_are_followed() -> None:
    one, two = Flow("us.orders", count=MAX_PARTITIONS), Flow("ap.orders")
    scene = Scene(one, two)
    scene.read(2)
    assert (scene.reader.reads, scene.poller.bracket) == ([], POLL)
    one.partitions = one.partitions[1:]
    scene.read()
    assert scene.reader.reads == [(*one.partitions, *two.partitions)]


def test_removed_flow_is_not_read_again() -> None:
    kept, removed = Flow("us.orders"), Flow("ap.orders")
    scene = Scene(kept, removed)
    scene.read(2)
    scene.poller.remove(cast("FlowArrivals", removed))
    scene.read()
    assert scene.reader.reads[-1] == kept.partitions
    assert (len(kept.compared), len(removed.compared)) == (2, 1)


def test_failed_read_is_counted_and_repeated_at_the_poll_interval() -> None:
    flow = Flow("us.orders")
    scene = Scene(flow)
    scene.read(2)
    scene.reader.failing = True
    assert scene.read() == POLL
    assert scene.poller.bracket == POLL
    assert scene.health.report().errors["eu", CollectionStage.ARRIVALS, "timeout"] == 1


def test_partition_that_cannot_be_read_slows_the_pace_and_stops_no_other() -> None:
    flow = Flow("us.orders", "gone")
    scene = Scene(flow)
    scene.reader.errors = {TopicPartition("gone", 0): ErrorKind.UNKNOWN_TOPIC}
    assert scene.read(2) == POLL
    assert len(flow.compared) == 1


def test_reads_further_apart_than_a_change_of_the_writer_are_not_compared() -> None:
    flow = Flow("us.orders")
    scene = Scene(flow)
    scene.read()
    scene.reader.now += 5.1
    scene.read()
    assert flow.compared == []
    scene.read()
    assert len(flow.compared) == 1


def test_refused_record_is_counted() -> None:
    scene = Scene(Flow("us.orders"))
    scene.read(2)
    assert scene.writer.on_delivery is not None
    refused = ErrorKind.AUTHORIZATION
    scene.writer.on_delivery(
        KafkaOperationError(refused, cluster="eu", operation="writing", detail="denied")
    )
    assert scene.health.report().errors["eu", CollectionStage.ARRIVALS, refused] == 1
