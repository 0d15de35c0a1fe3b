import threading
import time
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RawPartition
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.offset_requests import RequestPart, request_parts, split_by_leader

LEADERS = st.dictionaries(
    st.sampled_from("abc"), st.lists(st.integers(-1, 3), max_size=20), max_size=3
)
PARTITIONS = st.lists(
    st.builds(TopicPartition, st.sampled_from("abcd"), st.integers(0, 25)), unique=True
)


def _leader(leaders: dict[str, list[int]], partition: TopicPartition) -> int | None:
    known = leaders.get(partition.topic, [])
    return known[partition.partition] if partition.partition < len(known) else None


@given(PARTITIONS, LEADERS, st.integers(1, 12))
def test_split_by_leader_returns_each_partition_once_in_groups_of_one_leader(
    partitions: list[TopicPartition], leaders: dict[str, list[int]], size: int
) -> None:
    groups = split_by_leader(partitions, leaders, size)
    assert sorted(each for group in groups for each in group) == sorted(partitions)
    assert all(len(group) <= size for group in groups)
    if len(partitions) <= size:
        assert groups == [partitions]
        return
    of_group = [{_leader(leaders, each) for each in group} for group in groups]
    assert all(len(found) == 1 for found in of_group)
    by_leader = Counter(_leader(leaders, each) for each in partitions)
    assert Counter(found.pop() for found in of_group) == {
        leader: -(-count // size) for leader, count in by_leader.items()
    }


class Broker:
    """Answers after *latency* seconds of its clock; parts after the first wait for *together*."""

    def __init__(self, together: int = 1, latency: float = 0.0) -> None:
        self.timeouts: list[float] = []
        self.threads: set[int] = set()
        self.now = 0.0
        self._latency = latency
        self._together = threading.Barrier(together)

    def offsets_for_times(self, asked: list[Any], timeout: float) -> Any:
        self.timeouts.append(timeout)
        self.threads.add(threading.get_ident())
        self.now += self._latency
        if len(self.timeouts) > 1:
            self._together.wait(30)
        if asked[0].partition == 1:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return [RawPartition(each.topic, each.partition, 7) for each in asked]


def test_request_parts_of_distant_cluster_asks_at_the_same_time_and_returns_failures_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer: Any = Broker(together=3, latency=0.25)
    monkeypatch.setattr(time, "monotonic", lambda: consumer.now)
    partitions = [TopicPartition("orders", number) for number in range(4)]
    answers = request_parts(consumer, [RequestPart.of([each], -1) for each in partitions], 0, 30)
    assert [type(answer).__name__ for answer in answers] == [
        "OffsetAnswer",
        "KafkaException",
        "OffsetAnswer",
        "OffsetAnswer",
    ]
    for number in (0, 2, 3):
        assert answers[number] == ({partitions[number]: 7}, {})
    assert all(0 < timeout <= 30 for timeout in consumer.timeouts)


def test_request_parts_of_near_cluster_needs_no_other_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer: Any = Broker(latency=0.002)
    monkeypatch.setattr(time, "monotonic", lambda: consumer.now)
    parts = [RequestPart.of([TopicPartition("events", number)], -1) for number in range(100)]
    assert len(request_parts(consumer, parts, 0, 30)) == 100
    assert consumer.threads == {threading.get_ident()}


def test_request_parts_after_deadline_times_out_without_request() -> None:
    consumer: Any = Broker()
    part = RequestPart.of([TopicPartition("orders", 0)], -1)
    [answer] = request_parts(consumer, [part], 0, time.monotonic())
    assert isinstance(answer, KafkaException)
    assert answer.args[0].code() == KafkaError._TIMED_OUT
    assert consumer.timeouts == []
