"""Topic tails while topics and brokers change."""

import time
from collections.abc import Iterator

import pytest
from tail_polling import poll_until
from tests.integration.conftest import LabFactory
from transactional_traffic import OpenTransaction, produce_in_transaction

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import RestartReason, TailBatch, TailState
from mm2slo_kafka.topic_tail import TopicTail
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]
KEEP_ALL = {"retention.ms": "-1"}  # old records would be deleted within a second
ONE_CLUSTER = LabTopology(clusters=("us",), flows=(), engine=LabEngine.NONE)


@pytest.fixture
def us(lab: Lab) -> Iterator[ClusterClient]:
    with ClusterClient("us", lab.cluster("us").librdkafka()) as client:
        yield client


@pytest.fixture
def tail(us: ClusterClient, fresh_topic: str) -> Iterator[TopicTail]:
    found = TopicTail(us, fresh_topic, refresh_seconds=0.2)
    yield found
    found.close()


def places(batches: list[TailBatch]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for b in batches for record in b.records)


def test_tail_reads_existing_and_new_records_and_partitions(lab: Lab, tail: TopicTail) -> None:
    broker = lab.cluster("us")
    poll_until(tail, lambda: tail.state is TailState.ABSENT)
    broker.admin.create_topic(tail.topic, 2)
    produce(broker.librdkafka(), tail.topic, Load(3, partition=0))
    batches = poll_until(tail, lambda: tail.position.get(0) == 3)
    poll_until(tail, lambda: tail.caught_up)
    assert places(batches) == [(0, 0), (0, 1), (0, 2)]
    broker.admin.add_partitions(tail.topic, 3)
    produce(broker.librdkafka(), tail.topic, Load(2, partition=2))
    produce(broker.librdkafka(), tail.topic, Load(1, partition=0))
    batches = poll_until(tail, lambda: tail.position.get(2) == 2 and tail.position[0] == 4)
    assert places(batches) == [(0, 3), (2, 0), (2, 1)]
    assert all(batch.restarted is None for batch in batches)


def test_tail_reads_recreated_topic_from_start(lab: Lab, tail: TopicTail) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(tail.topic, 1)
    produce(broker.librdkafka(), tail.topic, Load(5))
    poll_until(tail, lambda: tail.position.get(0) == 5)
    old = tail.topic_id
    broker.admin.recreate_topic(tail.topic)
    # More records than before: the old position would be a valid one.
    produce(broker.librdkafka(), tail.topic, Load(9))
    batches = poll_until(tail, lambda: tail.topic_id != old and tail.position.get(0) == 9)
    poll_until(tail, lambda: tail.caught_up)
    restarts = [number for number, batch in enumerate(batches) if batch.restarted]
    assert restarts
    assert places(batches[restarts[-1] :]) == [(0, offset) for offset in range(9)]


def test_tail_restarts_after_deleted_records(lab: Lab, us: ClusterClient) -> None:
    broker, topic = lab.cluster("us"), "tail-overrun"
    broker.admin.create_topic(topic, 1)
    produce(broker.librdkafka(), topic, Load(10))
    tail = TopicTail(us, topic, refresh_seconds=0.2)
    tail.poll(1, 5.0)
    broker.admin.delete_records(topic, {0: 6})
    tail._group._unassign(topic)
    tail._tailed.positions[0] = 2  # its position after a long interruption
    tail._group._assign([topic])
    batches = poll_until(tail, lambda: tail.caught_up and tail.position.get(0) == 10)
    tail.close()
    restart = next(n for n, batch in enumerate(batches) if batch.restarted)
    restarted = batches[restart].restarted
    assert restarted is not None
    assert restarted.reason is RestartReason.OFFSET_OUT_OF_RANGE
    assert places(batches[restart:]) == [(0, offset) for offset in range(6, 10)]


def test_tail_with_read_committed_skips_open_and_aborted_records(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 1)
    produce(broker.librdkafka(), fresh_topic, Load(2))
    produce_in_transaction(
        broker.librdkafka(), fresh_topic, Load(3), transactional_id=fresh_topic, abort=True
    )
    orders = TopicPartition(fresh_topic, 0)
    wait_for(
        lambda: us.end_offsets([orders], "read_committed").offsets == {orders: 6}, "the marker"
    )
    tail = TopicTail(us, fresh_topic, isolation="read_committed")
    with OpenTransaction(
        broker.librdkafka(), fresh_topic, transactional_id=f"{fresh_topic}-2"
    ) as transaction:
        transaction.send(Load(1))
        batches = poll_until(tail, lambda: tail.caught_up)
        assert places(batches) == [(0, 0), (0, 1)]
        assert tail.position == {0: 6}
        transaction.commit()
    batches = poll_until(tail, lambda: (tail.position.get(0) or 0) >= 7)
    tail.close()
    assert places(batches) == [(0, 6)]


def test_tail_from_time_starts_at_first_later_record(
    lab: Lab, us: ClusterClient, fresh_topic: str
) -> None:
    broker = lab.cluster("us")
    broker.admin.create_topic(fresh_topic, 2, KEEP_ALL)
    for second in range(5):
        load = Load(1, partition=0, timestamp=1_700_000_000.0 + second)
        produce(broker.librdkafka(), fresh_topic, load)
    tail = TopicTail(us, fresh_topic, start=1_700_000_003.0)
    batches = poll_until(tail, lambda: tail.caught_up)
    tail.close()
    assert places(batches) == [(0, 3), (0, 4)]


@pytest.mark.long
def test_tail_continues_after_broker_restart(lab_factory: LabFactory) -> None:
    broker = lab_factory(ONE_CLUSTER).cluster("us")
    broker.admin.create_topic("orders", 1)
    produce(broker.librdkafka(), "orders", Load(3))
    orders = TopicPartition("orders", 0)
    with ClusterClient("us", broker.librdkafka()) as client:
        tail = TopicTail(client, "orders", refresh_seconds=0.2)
        batches = poll_until(tail, lambda: tail.caught_up)
        assert client.end_offsets([orders]).offsets == {orders: 3}
        broker.stop()
        started = time.monotonic()
        with pytest.raises(KafkaOperationError) as caught:
            client.end_offsets([orders], timeout=2.0)
        assert caught.value.kind is ErrorKind.UNREACHABLE
        assert time.monotonic() - started < 30  # librdkafka's default is 60 s
        batches += poll_until(tail, lambda: tail.problem is not None)
        assert tail.problem is not None
        assert tail.problem.kind is ErrorKind.UNREACHABLE
        broker.start()
        produce(broker.librdkafka(), "orders", Load(2))
        batches += poll_until(tail, lambda: tail.position.get(0) == 5)
        batches += poll_until(tail, lambda: tail.problem is None)
        tail.close()
        assert client.end_offsets([orders], timeout=60).offsets == {orders: 5}
    assert places(batches) == [(0, offset) for offset in range(5)]
    assert all(batch.restarted is None for batch in batches)


def test_tail_reports_hanging_broker(lab_factory: LabFactory) -> None:
    broker = lab_factory(ONE_CLUSTER).cluster("us")
    broker.admin.create_topic("orders", 1)
    broker.admin.end_offsets("orders")  # waits for its leader
    orders = TopicPartition("orders", 0)
    expected = {ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE}
    with ClusterClient("us", broker.librdkafka()) as client:
        assert client.end_offsets([orders]).offsets == {orders: 0}
        broker.pause()
        try:
            started = time.monotonic()
            with pytest.raises(KafkaOperationError) as caught:
                client.topics(timeout=1.0)
            assert caught.value.kind in expected
            # With known leaders, errors are reported per partition.
            try:
                kinds = set(client.end_offsets([orders], timeout=1.0).errors.values())
            except KafkaOperationError as problem:
                kinds = {problem.kind}
            assert kinds
            assert kinds <= expected
            assert time.monotonic() - started < 30  # librdkafka's default is 60 s
        finally:
            broker.resume()
        assert client.end_offsets([orders], timeout=60).offsets == {orders: 0}
