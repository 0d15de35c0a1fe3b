import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from tail_polling import poll_until
from tests.unit.kafka.conftest import MockCluster, ScriptedClient

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.tailed_topic import Restarted, RestartReason, TailBatch, TailRecord, TailState
from mm2slo_kafka.topic_tail import TopicTail

MakeTail = Callable[..., TopicTail]


@pytest.fixture
def make_tail(scripted: ScriptedClient, topic: str) -> Iterator[MakeTail]:
    made: list[TopicTail] = []

    def make(**options: object) -> TopicTail:
        tail = TopicTail(scripted, topic, **{"refresh_seconds": 0.05, **options})  # type: ignore[arg-type]  # passed through
        made.append(tail)
        return tail

    yield make
    for tail in made:
        tail.close()


def values(batches: list[TailBatch]) -> list[bytes | None]:
    return [record.value for batch in batches for record in batch.records]


def test_tail_reads_all_partitions_until_caught_up(
    mock_cluster: MockCluster, make_tail: MakeTail, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b"], partition=0)
    mock_cluster.write(topic, [b"c"], partition=3)
    tail = make_tail()
    assert (tail.state, tail.caught_up) == (TailState.STARTING, False)
    batches = poll_until(tail, lambda: tail.caught_up)
    assert sorted(values(batches), key=str) == [b"a", b"b", b"c"]
    assert tail.position[0] == 2
    assert tail.position[3] == 1
    first = next(record for batch in batches for record in batch.records)
    assert isinstance(first, TailRecord)
    assert (first.timestamp_ms, first.key, first.headers) == (1_700_000_000_123, b"key", None)


def test_tail_of_empty_partition_is_caught_up(
    mock_cluster: MockCluster, make_tail: MakeTail, topic: str
) -> None:
    mock_cluster.write(topic, [])
    mock_cluster.write_transaction(topic, [b"a"], commit=True, partition=1)
    tail = make_tail()
    assert values(poll_until(tail, lambda: tail.caught_up)) == [b"a"]
    assert tail.position[0] == 0


def test_tail_of_partition_ending_with_marker_is_caught_up(
    mock_cluster: MockCluster, make_tail: MakeTail, topic: str
) -> None:
    mock_cluster.write_transaction(topic, [b"a"], commit=True)
    tail = make_tail(isolation="read_committed")
    assert values(poll_until(tail, lambda: tail.caught_up)) == [b"a"]
    assert tail.position[0] == 2


def test_tail_after_catch_up_returns_new_record_without_delay(
    mock_cluster: MockCluster, make_tail: MakeTail, topic: str
) -> None:
    mock_cluster.write(topic, [b"a"])
    tail = make_tail()
    poll_until(tail, lambda: tail.caught_up)
    mock_cluster.write(topic, [b"b"])
    started = time.monotonic()
    batches = [tail.poll(1000, timeout=60.0)]
    while not values(batches):  # reaching the end of a partition also ends a poll
        batches.append(tail.poll(1000, timeout=60.0))
    assert values(batches) == [b"b"]
    # A poll that waited for its timeout would take 60 s.
    assert time.monotonic() - started < 30


def test_tail_from_end_skips_existing_records(
    mock_cluster: MockCluster, make_tail: MakeTail, topic: str
) -> None:
    mock_cluster.write(topic, [b"old"])
    tail = make_tail(start="end")
    assert values(poll_until(tail, lambda: tail.caught_up)) == []
    mock_cluster.write(topic, [b"new"])
    batches: list[TailBatch] = []
    while not values(batches):
        batches += poll_until(tail, lambda: tail.position[0] == 2)
    assert values(batches) == [b"new"]


def test_tail_of_missing_topic_reads_it_once_created(
    mock_cluster: MockCluster, make_tail: MakeTail, scripted: ScriptedClient, topic: str
) -> None:
    scripted.identity = None
    tail = make_tail()
    tail.poll(10, 0.05)
    assert (tail.state, tail.caught_up) == (TailState.ABSENT, False)
    mock_cluster.write(topic, [b"a"])
    scripted.identity = TopicIdentity("id-1", 4)
    batches = poll_until(tail, lambda: tail.caught_up)
    assert values(batches) == [b"a"]
    assert all(batch.restarted is None for batch in batches)


def test_missing_topic_is_looked_up_each_second_then_as_often_as_others(
    make_tail: MakeTail, scripted: ScriptedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.identity = None
    tail = make_tail(refresh_seconds=60.0)
    lookups, waits = tail._group._lookups, []
    set_due = lookups.set_due

    def set_due_now(topic: str, seconds: float = 0.0) -> None:
        waits.append(seconds)
        set_due(topic)

    monkeypatch.setattr(lookups, "set_due", set_due_now)
    poll_until(tail, lambda: len(waits) >= 32)
    assert waits[:32] == [1.0] * 30 + [60.0] * 2


def test_tail_of_recreated_topic_restarts(
    mock_cluster: MockCluster, make_tail: MakeTail, scripted: ScriptedClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b"])
    tail = make_tail()
    poll_until(tail, lambda: tail.caught_up)
    scripted.identity = TopicIdentity("id-2", 4)
    batches = poll_until(tail, lambda: tail.caught_up and tail.topic_id == "id-2")
    assert [b.restarted for b in batches if b.restarted] == [Restarted(RestartReason.RECREATED)]
    voided = next(n for n, batch in enumerate(batches) if batch.restarted)
    assert values(batches[:voided]) == []
    assert values(batches[voided:]) == [b"a", b"b"]


def test_tail_of_topic_that_reappears_continues(
    mock_cluster: MockCluster, make_tail: MakeTail, scripted: ScriptedClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a"])
    tail = make_tail()
    poll_until(tail, lambda: tail.caught_up)
    scripted.identity = None
    poll_until(tail, lambda: tail.state is TailState.ABSENT)
    mock_cluster.write(topic, [b"b"])
    scripted.identity = TopicIdentity("id-1", 4)
    batches = poll_until(tail, lambda: tail.position[0] == 2)
    assert values(batches) == [b"b"]
    assert all(batch.restarted is None for batch in batches)


def test_tail_reads_added_partition_from_start(
    mock_cluster: MockCluster, make_tail: MakeTail, scripted: ScriptedClient, topic: str
) -> None:
    scripted.identity = TopicIdentity("id-1", 2)
    mock_cluster.write(topic, [b"a"], partition=0)
    mock_cluster.write(topic, [b"z"], partition=3)
    tail = make_tail()
    assert values(poll_until(tail, lambda: tail.caught_up)) == [b"a"]
    scripted.identity = TopicIdentity("id-1", 4)
    batches = poll_until(tail, lambda: tail.position.get(3) == 1)
    assert values(batches) == [b"z"]


def test_tail_of_unreachable_cluster_has_problem(
    dead_client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_kafka.topic_tail._TIMEOUT_SECONDS", 0.5)
    tail = TopicTail(dead_client, "heartbeats")
    deadline = time.monotonic() + 10
    while tail.problem is None and time.monotonic() < deadline:
        assert tail.poll(10, 0.2).records == []
    tail.close()
    assert tail.problem is not None
    assert tail.problem.kind is ErrorKind.UNREACHABLE
    assert (tail.state, tail.caught_up) == (TailState.STARTING, False)


def test_refused_tail_is_assigned_again_and_has_problem_until_it_is_read(
    mock_cluster: MockCluster, make_tail: MakeTail, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mock_cluster.write(topic, [b"a"])
    tail = make_tail(refresh_seconds=5.0)
    poll_until(tail, lambda: tail.caught_up)
    group, tailed = tail._group, tail._tailed
    assigned: list[object] = []

    def assign(_topics: set[str]) -> None:
        assigned.append(tail.problem)
        group._lookups.set_due(topic)

    refusal: Any = SimpleNamespace(partition=lambda: 0, offset=lambda: 1)
    with monkeypatch.context() as patched:
        patched.setattr(group, "_assign", assign)
        group._unassign(topic)  # else the end of the partition may still be reported
        group._take_error(tailed, refusal, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        group._lookups.set_due(topic)
        refused = tail.problem
        # Nothing is assigned, so a poll only looks up the topic.
        poll_until(tail, lambda: len(assigned) >= 3)
    assert refused is not None
    assert refused.kind is ErrorKind.AUTHORIZATION
    assert assigned[:3] == [refused] * 3
    assert values(poll_until(tail, lambda: tail.problem is None)) == []
