from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RawPartition
from tests.unit.kafka.conftest import MockCluster

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka import partition_offsets
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, kind_of
from mm2slo_kafka.offset_requests import PART_SIZE
from mm2slo_kafka.partition_offsets import OffsetReader, OffsetReading
from mm2slo_kafka.request_sizes import chunks


def partitions(topic: str, count: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in range(count))


def test_end_and_start_offsets_are_returned_per_partition(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b", b"c"], partition=1)
    wanted = partitions(topic, 4)
    assert client.end_offsets(wanted).offsets == dict(zip(wanted, (0, 3, 0, 0), strict=True))
    assert client.start_offsets(wanted).offsets == dict.fromkeys(wanted, 0)


def test_end_offsets_of_missing_partition_reports_unknown_topic(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a"])
    there, missing = TopicPartition(topic, 0), TopicPartition(topic, 9)
    reading = client.end_offsets([there, missing])
    assert reading.offsets == {there: 1}
    assert reading.errors == {missing: ErrorKind.UNKNOWN_TOPIC}


def test_end_offsets_have_request_and_answer_times(mock_cluster: MockCluster, topic: str) -> None:
    mock_cluster.write(topic, [b"a"])
    stamps = iter((100.0, 100.5))
    with ClusterClient("us", mock_cluster.properties, clock=lambda: next(stamps)) as client:
        reading = client.end_offsets(partitions(topic, 1))
    assert (reading.requested_at, reading.answered_at) == (100.0, 100.5)


def test_end_offsets_without_partitions_sends_no_request(dead_client: ClusterClient) -> None:
    reading = dead_client.end_offsets([])
    assert (reading.offsets, reading.errors) == ({}, {})


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_end_offsets_of_unreachable_cluster_fail_within_timeout(
    dead_client: ClusterClient, isolation: Any
) -> None:
    started = time.monotonic()
    with pytest.raises(KafkaOperationError, match="Connection refused") as caught:
        dead_client.end_offsets(partitions("orders", 3), isolation, timeout=1.0)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert time.monotonic() - started < 30  # librdkafka's default is 60 s


class OneLeaderDown:
    """A client while broker 1, the leader of partition 1, does not answer.

    Like librdkafka, it returns nothing when one of the leaders does not answer.
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
        return [RawPartition("orders", n, 5 + n) for n in numbers]

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
def one_leader_down(monkeypatch: pytest.MonkeyPatch) -> OneLeaderDown:
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
        pytest.param(7, ErrorKind.UNREACHABLE, id="leader is not a broker"),
        pytest.param(1, ErrorKind.TIMEOUT, id="unresponsive leader"),
        pytest.param(None, ErrorKind.UNKNOWN_TOPIC, id="no such partition"),
    ],
)
def test_end_offsets_with_one_leader_down_returns_other_partitions(
    one_leader_down: OneLeaderDown, leader: int | None, kind: ErrorKind
) -> None:
    del one_leader_down.leaders[1]
    if leader is not None:
        one_leader_down.leaders[1] = leader
    reading = read(one_leader_down)
    assert reading.offsets == {TopicPartition("orders", 0): 5, TopicPartition("orders", 2): 7}
    assert reading.errors == {TopicPartition("orders", 1): kind}


def test_end_offsets_with_one_leader_down_skip_batched_request(
    one_leader_down: OneLeaderDown,
) -> None:
    read(one_leader_down, times=3)
    assert one_leader_down.calls == [[0, 1, 2], *[[0, 2], [1]] * 3]


def test_end_offsets_after_recovery_use_batched_request(
    one_leader_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin: Any = one_leader_down
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    reader.read_end(partitions("orders", 3), timeout=1.0)
    monkeypatch.setattr(one_leader_down, "silent", set())
    one_leader_down.calls.clear()
    for _ in range(2):
        assert len(reader.read_end(partitions("orders", 3), timeout=1.0).offsets) == 3
    assert one_leader_down.calls == [[0, 2], [1], [0, 1, 2]]


def test_end_offsets_with_refused_partition_returns_other_partitions(
    one_leader_down: OneLeaderDown,
) -> None:
    """Happens while a topic is created; librdkafka then fails the whole request."""
    one_leader_down.silent = set()
    one_leader_down.leaders = dict.fromkeys(range(3), 0)
    one_leader_down.refused = {1}
    reading = read(one_leader_down)
    assert reading.offsets == {TopicPartition("orders", 0): 5, TopicPartition("orders", 2): 7}
    assert reading.errors == {TopicPartition("orders", 1): ErrorKind.UNREACHABLE}


def test_end_offsets_refused_by_leader_limit_number_of_requests(
    one_leader_down: OneLeaderDown,
) -> None:
    one_leader_down.silent = set()
    one_leader_down.leaders = dict.fromkeys(range(1000), 0)
    one_leader_down.refused = set(range(1000))
    admin: Any = one_leader_down
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    with pytest.raises(KafkaOperationError) as caught:
        reader.read_end(partitions("orders", 1000), timeout=10.0)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    parts = 1000 // PART_SIZE
    assert len(one_leader_down.calls) == parts + parts + parts + 64  # also by a new consumer


def test_end_offsets_of_many_partitions_are_requested_in_parts_of_one_leader(
    one_leader_down: OneLeaderDown,
) -> None:
    one_leader_down.silent = set()
    admin: Any = one_leader_down
    leaders = {"orders": [number % 2 for number in range(1400)]}
    reader = OffsetReader(
        HandleFactory("us", {}), lambda: admin, "read_uncommitted", leaders=lambda: leaders
    )
    wanted = partitions("orders", 1400)
    reading = reader.read_end(wanted, timeout=10.0)
    assert reading.offsets == {each: 5 + each.partition for each in wanted}
    assert reading.errors == {}
    of_leaders = list(range(0, 1400, 2)), list(range(1, 1400, 2))
    assert sorted(one_leader_down.calls) == sorted(
        part for numbers in of_leaders for part in chunks(numbers, PART_SIZE)
    )


def test_end_offsets_of_many_partitions_with_one_leader_down_return_other_partitions(
    one_leader_down: OneLeaderDown,
) -> None:
    one_leader_down.leaders = {number: number % 2 for number in range(1400)}
    one_leader_down.silent = set(range(1, 1400, 2))
    admin: Any = one_leader_down
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    wanted = partitions("orders", 1400)
    for _ in range(2):
        reading = reader.read_end(wanted, timeout=10.0)
        assert reading.offsets == {each: 5 + each.partition for each in wanted[::2]}
        assert reading.errors == dict.fromkeys(wanted[1::2], ErrorKind.TIMEOUT)


def test_end_offsets_with_part_of_unknown_topics_return_other_parts(
    one_leader_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka then knows no leader for any partition of the part, and fails as a whole."""
    known, unknown = partitions("orders", PART_SIZE), partitions("gone", PART_SIZE)
    one_leader_down.leaders = dict.fromkeys(range(PART_SIZE), 0)

    def answer(asked: list[Any], timeout: float) -> Any:
        if asked[0].topic == "gone":
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC, f"after {timeout}"))
        return [RawPartition("orders", each.partition, 5) for each in asked]

    monkeypatch.setattr(one_leader_down, "offsets_for_times", answer)
    monkeypatch.setattr(
        partition_offsets,
        "identify_topics",
        lambda _handles, _admin, topics, _timeout: (
            {},
            dict.fromkeys(topics, ErrorKind.UNKNOWN_TOPIC),
        ),
    )
    admin: Any = one_leader_down
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    reading = reader.read_end([*known, *unknown], timeout=10.0)
    assert reading.offsets == dict.fromkeys(known, 5)
    assert reading.errors == dict.fromkeys(unknown, ErrorKind.UNKNOWN_TOPIC)


class RealCluster:
    """Topics of one partition, by the error that brokers have for them, and clients of them.

    As librdkafka 2.16 (tests/integration/test_kafka_offsets.py has the same cases): brokers refuse
    a whole request with the error of one topic. A consumer keeps what it knows of a topic, so that
    only a new one has an error for each topic, which it keeps, too.
    """

    def __init__(self, *topics: str) -> None:
        self.errors: dict[str, int | None] = dict.fromkeys(topics)
        self.consumers: list[CachingConsumer] = []
        self.listings = 0
        self.leaders: dict[str, list[int]] = {}

    def consumer(self, *_settings: object, **_options: object) -> CachingConsumer:
        self.consumers.append(CachingConsumer(self))
        return self.consumers[-1]

    def list_topics(self, timeout: float) -> Any:
        assert timeout > 0
        self.listings += 1
        led = {
            name: SimpleNamespace(
                error=None,
                partitions={
                    0: SimpleNamespace(leader=-1 if error == KafkaError.LEADER_NOT_AVAILABLE else 0)
                },
            )
            for name, error in self.errors.items()
            if error in (None, KafkaError.LEADER_NOT_AVAILABLE)
        }
        return SimpleNamespace(topics=led, brokers={0: None})

    def identify(self, *arguments: Any) -> Any:
        codes = {name: self.errors[name] for name in arguments[2]}
        return {}, {name: kind_of(KafkaError(code)) for name, code in codes.items() if code}

    def poll(self, _timeout: float) -> int:
        return 0


class CachingConsumer:
    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.known: dict[str, int | None] = {}
        self.closed = False

    def offsets_for_times(self, asked: list[Any], timeout: float) -> Any:
        assert timeout > 0
        answers: list[RawPartition | Failed] = []
        for each in asked:
            error = self.known.setdefault(each.topic, self.cluster.errors[each.topic])
            if error is None and (refused := self.cluster.errors[each.topic]) is not None:
                raise KafkaException(KafkaError(refused))
            answers.append(
                RawPartition(each.topic, 0, 5) if error is None else Failed(each.topic, error)
            )
        if all(self.known[each.topic] == KafkaError._UNKNOWN_PARTITION for each in asked):
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return answers

    def poll(self, _timeout: float) -> int:
        return 0

    def close(self) -> None:
        self.closed = True


class Failed:
    """A partition with an error, which cannot be set from Python."""

    def __init__(self, topic: str, code: int) -> None:
        self.topic, self.partition, self.offset = topic, 0, -1
        self.error = KafkaError(code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawPartition) and other.topic == self.topic

    def __hash__(self) -> int:
        return hash(self.topic)


@pytest.fixture
def real_cluster(monkeypatch: pytest.MonkeyPatch) -> RealCluster:
    fake = RealCluster("orders", "payments", "returns")
    monkeypatch.setattr(HandleFactory, "consumer", fake.consumer)
    monkeypatch.setattr(partition_offsets, "identify_topics", fake.identify)
    return fake


def reader_of(cluster: RealCluster) -> OffsetReader:
    admin: Any = cluster
    return OffsetReader(
        HandleFactory("us", {}), lambda: admin, "read_uncommitted", leaders=lambda: cluster.leaders
    )


def test_end_offsets_of_a_partition_that_the_consumer_does_not_know_use_a_new_one(
    real_cluster: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a leader for any partition, librdkafka has one error for all of a request."""
    monkeypatch.setattr(partition_offsets, "_RENEW_SECONDS", 0.0)
    reader = reader_of(real_cluster)
    real_cluster.errors["payments"] = KafkaError._UNKNOWN_PARTITION
    assert reader.read_end([PAYMENTS], 1.0).errors == {PAYMENTS: ErrorKind.UNKNOWN_TOPIC}
    real_cluster.errors["payments"] = None
    assert reader.read_end([PAYMENTS], 1.0).offsets == {PAYMENTS: 5}


ORDERS, PAYMENTS, RETURNS = (TopicPartition(name, 0) for name in ("orders", "payments", "returns"))


@pytest.mark.parametrize("operation", ["read_end", "read_start"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(KafkaError.UNKNOWN_TOPIC_OR_PART, ErrorKind.UNKNOWN_TOPIC, id="deleted"),
        pytest.param(KafkaError.TOPIC_AUTHORIZATION_FAILED, ErrorKind.AUTHORIZATION, id="denied"),
        pytest.param(KafkaError.LEADER_NOT_AVAILABLE, ErrorKind.UNREACHABLE, id="leaderless"),
    ],
)
def test_offsets_with_one_refused_topic_return_others_by_one_new_consumer(
    real_cluster: RealCluster, operation: str, code: int, kind: ErrorKind
) -> None:
    reader = reader_of(real_cluster)
    wanted = [ORDERS, PAYMENTS, RETURNS]
    assert len(getattr(reader, operation)(wanted, 1.0).offsets) == 3
    real_cluster.errors["payments"] = code
    for _ in range(3):
        reading = getattr(reader, operation)(wanted, 1.0)
        assert reading.offsets == {ORDERS: 5, RETURNS: 5}
        assert reading.errors == {PAYMENTS: kind}
    assert [each.closed for each in real_cluster.consumers] == [True, False]
    assert real_cluster.listings == 0


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(KafkaError.UNKNOWN_TOPIC_OR_PART, ErrorKind.UNKNOWN_TOPIC, id="deleted"),
        pytest.param(KafkaError.TOPIC_AUTHORIZATION_FAILED, ErrorKind.AUTHORIZATION, id="denied"),
        pytest.param(KafkaError.LEADER_NOT_AVAILABLE, ErrorKind.UNREACHABLE, id="leaderless"),
        pytest.param(KafkaError.KAFKA_STORAGE_ERROR, ErrorKind.OTHER, id="disk"),
    ],
)
def test_end_offsets_with_topic_refused_just_after_another_return_others_by_leader(
    real_cluster: RealCluster, code: int, kind: ErrorKind
) -> None:
    reader = reader_of(real_cluster)
    wanted = [ORDERS, PAYMENTS, RETURNS]
    reader.read_end(wanted, 1.0)
    for topic in ("payments", "returns"):
        real_cluster.errors[topic] = code
        reading = reader.read_end(wanted, 1.0)
    assert reading.offsets == {ORDERS: 5}
    assert reading.errors == {PAYMENTS: kind, RETURNS: kind}
    assert len(real_cluster.consumers) == 2
    # Without the deleted topics, offsets are requested at once again.
    listings = real_cluster.listings
    assert reader.read_end([ORDERS], 1.0).offsets == {ORDERS: 5}
    assert real_cluster.listings == listings == 1


@pytest.mark.parametrize(
    ("leader", "offsets"),
    [
        pytest.param(0, {ORDERS: 5, PAYMENTS: 5}, id="has a leader"),
        pytest.param(-1, {ORDERS: 5}, id="has none"),
    ],
)
def test_end_offsets_with_remembered_error_use_new_consumer_if_topic_has_leader(
    real_cluster: RealCluster, leader: int, offsets: dict[TopicPartition, int]
) -> None:
    """A consumer that was created while a partition had no leader reports that for minutes."""
    real_cluster.errors["payments"] = KafkaError.LEADER_NOT_AVAILABLE
    real_cluster.leaders = {"orders": [0], "payments": [-1]}
    reader = reader_of(real_cluster)
    for _ in range(2):
        assert reader.read_end([ORDERS, PAYMENTS], 1.0).offsets == {ORDERS: 5}
    real_cluster.errors["payments"] = None
    real_cluster.leaders = {"orders": [0], "payments": [leader]}
    assert reader.read_end([ORDERS, PAYMENTS], 1.0).offsets == offsets


def test_end_offsets_with_all_leaders_down_raise_timeout(one_leader_down: OneLeaderDown) -> None:
    one_leader_down.silent = {0, 1}
    with pytest.raises(KafkaOperationError) as caught:
        read(one_leader_down)
    assert caught.value.kind is ErrorKind.TIMEOUT


def test_end_offsets_with_invalid_offset_report_timeout(
    one_leader_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_partitions: object, timeout: float) -> Any:
        return [RawPartition("orders", n, offset) for n, offset in enumerate((5, -1001, 7))]

    monkeypatch.setattr(one_leader_down, "offsets_for_times", silent)
    reading = read(one_leader_down)
    assert reading.offsets == {TopicPartition("orders", 0): 5, TopicPartition("orders", 2): 7}
    assert reading.errors == {TopicPartition("orders", 1): ErrorKind.TIMEOUT}


def test_end_offsets_with_mismatched_response_raise(
    one_leader_down: OneLeaderDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shuffled(_partitions: object, timeout: float) -> Any:
        return [RawPartition("orders", n, n) for n in (1, 0, 2)]

    monkeypatch.setattr(one_leader_down, "offsets_for_times", shuffled)
    with pytest.raises(RuntimeError, match="other partitions"):
        read(one_leader_down)
