from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client import ClusterClient
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.handles import HandleFactory
from mm2slo_kafka.offsets import OffsetReader, OffsetReading

if TYPE_CHECKING:
    from tests.unit.kafka.conftest import MockCluster


def partitions(topic: str, count: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in range(count))


def test_end_and_start_offsets_of_each_partition(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b", b"c"], partition=1)
    wanted = partitions(topic, 4)
    assert client.end_offsets(wanted).offsets == dict(zip(wanted, (0, 3, 0, 0), strict=True))
    assert client.start_offsets(wanted).offsets == dict.fromkeys(wanted, 0)


def test_a_partition_that_does_not_exist_is_an_error_of_its_own(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a"])
    there, missing = TopicPartition(topic, 0), TopicPartition(topic, 9)
    reading = client.end_offsets([there, missing])
    assert reading.offsets == {there: 1}
    assert reading.errors == {missing: ErrorKind.UNKNOWN_TOPIC}


def test_a_reading_lies_between_its_two_stamps(mock_cluster: MockCluster, topic: str) -> None:
    mock_cluster.write(topic, [b"a"])
    stamps = iter((100.0, 100.5))
    with ClusterClient("us", mock_cluster.properties, clock=lambda: next(stamps)) as client:
        reading = client.end_offsets(partitions(topic, 1))
    assert (reading.requested_at, reading.answered_at) == (100.0, 100.5)


def test_no_partition_asks_nothing(dead_client: ClusterClient) -> None:
    reading = dead_client.end_offsets([])
    assert (reading.offsets, reading.errors) == ({}, {})


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_cluster_that_is_away_is_unreachable_within_the_timeout(
    dead_client: ClusterClient, isolation: Any
) -> None:
    started = time.monotonic()
    with pytest.raises(KafkaOperationError, match="Connection refused") as caught:
        dead_client.end_offsets(partitions("orders", 3), isolation, timeout=1.0)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert time.monotonic() - started < 1.5


class OneLeaderDown:
    """Clients as they behave while broker 1, the leader of partition 1, does not answer.

    `leaders` are those of the partitions; librdkafka gives nothing at all when one is silent.
    """

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.leaders = {0: 0, 1: 1, 2: 0}
        self.brokers = (0, 1)
        self.silent = {1}
        self.refused: set[int] = set()

    def consumer(self, *_settings: object, **_options: object) -> OneLeaderDown:
        return self

    def offsets_for_times(self, asked: list[Any], timeout: float) -> Any:
        numbers = [each.partition for each in asked]
        self.calls.append(numbers)
        if self.silent & set(numbers):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"nothing in {timeout}"))
        if self.refused & set(numbers):
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return [
            SimpleNamespace(topic="orders", partition=n, offset=5 + n, error=None) for n in numbers
        ]

    def list_topics(self, timeout: float) -> Any:
        assert timeout > 0
        led = {n: SimpleNamespace(leader=leader) for n, leader in self.leaders.items()}
        topics = {"orders": SimpleNamespace(error=None, partitions=led)}
        return SimpleNamespace(topics=topics, brokers=dict.fromkeys(self.brokers))

    def poll(self, _timeout: float) -> int:
        return 0

    def close(self) -> None:
        pass


@pytest.fixture
def half_down(monkeypatch: pytest.MonkeyPatch) -> OneLeaderDown:
    fake = OneLeaderDown()
    monkeypatch.setattr(HandleFactory, "consumer", fake.consumer)
    return fake


def read(fake: OneLeaderDown, times: int = 1) -> OffsetReading:
    admin: Any = fake
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    for _ in range(times):
        reading = reader.read_end(partitions("orders", 3), timeout=1.0)
    return reading


@pytest.mark.parametrize(
    ("leader", "kind"),
    [
        pytest.param(-1, ErrorKind.UNREACHABLE, id="no leader"),
        pytest.param(7, ErrorKind.UNREACHABLE, id="a leader that is no broker any more"),
        pytest.param(1, ErrorKind.TIMEOUT, id="silent leader"),
        pytest.param(None, ErrorKind.UNKNOWN_TOPIC, id="no such partition"),
    ],
)
def test_one_leader_down_leaves_the_other_partitions_readable(
    half_down: OneLeaderDown, leader: int | None, kind: ErrorKind
) -> None:
    del half_down.leaders[1]
    if leader is not None:
        half_down.leaders[1] = leader
    reading = read(half_down)
    assert reading.offsets == {TopicPartition("orders", 0): 5, TopicPartition("orders", 2): 7}
    assert reading.errors == {TopicPartition("orders", 1): kind}


def test_while_a_leader_is_down_no_time_is_lost_on_the_way_that_fails(
    half_down: OneLeaderDown,
) -> None:
    read(half_down, times=3)
    assert half_down.calls == [[0, 1, 2], *[[0, 2], [1]] * 3]


def test_when_all_leaders_answer_again_the_cheap_way_is_taken_again(
    half_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin: Any = half_down
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    reader.read_end(partitions("orders", 3), timeout=1.0)
    monkeypatch.setattr(half_down, "silent", set())
    half_down.calls.clear()
    for _ in range(2):
        assert len(reader.read_end(partitions("orders", 3), timeout=1.0).offsets) == 3
    assert half_down.calls == [[0, 2], [1], [0, 1, 2]]


def test_a_partition_that_its_leader_refuses_leaves_the_others_readable(
    half_down: OneLeaderDown,
) -> None:
    """As while a topic is being created: librdkafka gives nothing for the whole request."""
    half_down.silent = set()
    half_down.leaders = dict.fromkeys(range(3), 0)
    half_down.refused = {1}
    reading = read(half_down)
    assert reading.offsets == {TopicPartition("orders", 0): 5, TopicPartition("orders", 2): 7}
    assert reading.errors == {TopicPartition("orders", 1): ErrorKind.UNREACHABLE}


def test_a_leader_that_refuses_all_is_not_asked_once_per_partition(
    half_down: OneLeaderDown,
) -> None:
    half_down.silent = set()
    half_down.leaders = dict.fromkeys(range(1000), 0)
    half_down.refused = set(range(1000))
    admin: Any = half_down
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    with pytest.raises(KafkaOperationError) as caught:
        reader.read_end(partitions("orders", 1000), timeout=10.0)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert len(half_down.calls) == 1 + 64


def test_when_no_leader_answers_the_reading_fails_as_a_whole(half_down: OneLeaderDown) -> None:
    half_down.silent = {0, 1}
    with pytest.raises(KafkaOperationError) as caught:
        read(half_down)
    assert caught.value.kind is ErrorKind.TIMEOUT


def test_an_invalid_offset_without_an_error_is_no_offset(
    half_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_partitions: object, timeout: float) -> Any:
        offsets = enumerate((5, -1001, 7))
        return [
            SimpleNamespace(topic="orders", partition=n, offset=o, error=None) for n, o in offsets
        ]

    monkeypatch.setattr(half_down, "offsets_for_times", silent)
    reading = read(half_down)
    assert reading.offsets == {TopicPartition("orders", 0): 5, TopicPartition("orders", 2): 7}
    assert reading.errors == {TopicPartition("orders", 1): ErrorKind.TIMEOUT}


def test_an_answer_about_other_partitions_is_never_taken_for_ours(
    half_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shuffled(_partitions: object, timeout: float) -> Any:
        return [
            SimpleNamespace(topic="orders", partition=n, offset=n, error=None) for n in (1, 0, 2)
        ]

    monkeypatch.setattr(half_down, "offsets_for_times", shuffled)
    with pytest.raises(RuntimeError, match="other partitions"):
        read(half_down)
