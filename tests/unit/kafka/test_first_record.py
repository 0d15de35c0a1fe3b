import time

import pytest
from tests.unit.kafka.conftest import MockCluster

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.first_records import FirstRecord
from mm2slo_kafka.kafka_errors import ErrorKind


def test_first_record_at_offset_has_offset_and_timestamp(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b", b"c"])
    found = client.first_records({TopicPartition(topic, 0): (1, 3)}).found[TopicPartition(topic, 0)]
    assert found == FirstRecord(1, 1_700_000_000_123)


def test_first_record_in_range_of_transaction_marker_is_none(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write_transaction(topic, [b"a"], commit=True)
    orders = TopicPartition(topic, 0)
    assert client.end_offsets([orders]).offsets == {orders: 2}
    assert client.first_records({orders: (1, 2)}).found[orders] is None


def test_first_record_beyond_range_is_none(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write_transaction(topic, [b"a"], commit=True)
    mock_cluster.write(topic, [b"b"])
    assert (
        client.first_records({TopicPartition(topic, 0): (1, 2)}).found[TopicPartition(topic, 0)]
        is None
    )


def test_first_record_in_empty_range_sends_no_request(dead_client: ClusterClient) -> None:
    assert (
        dead_client.first_records({TopicPartition("orders", 0): (7, 7)}).found[
            TopicPartition("orders", 0)
        ]
        is None
    )


def test_first_records_of_several_partitions_returns_one_per_partition(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    for partition in range(4):
        mock_cluster.write(topic, [b"x"] * (partition + 1), partition=partition)
    ranges = {TopicPartition(topic, n): (n, n + 1) for n in range(4)}
    answer = client.first_records(ranges, timeout=10)
    assert {p.partition: r.offset for p, r in answer.found.items() if r} == {0: 0, 1: 1, 2: 2, 3: 3}
    assert answer.failures == {}


def test_first_records_beyond_log_end_fails_as_not_visible(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b"])
    orders = TopicPartition(topic, 0)
    answer = client.first_records({orders: (2, 5)}, timeout=10)
    assert answer.failures == {orders: ErrorKind.OTHER}


def test_first_record_at_offset_beyond_log_end_is_out_of_range(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b"])
    orders = TopicPartition(topic, 0)
    answer = client.first_records({orders: (40, 50)})
    assert answer.failures == {orders: ErrorKind.OFFSET_OUT_OF_RANGE}


@pytest.mark.parametrize("timeout", [0.5, 0.55])
def test_first_records_of_unreachable_cluster_fail_at_deadline(
    dead_client: ClusterClient, timeout: float
) -> None:
    """Also if too little time is left to ask whether the topic exists."""
    started = time.monotonic()
    orders = TopicPartition("orders", 0)
    answer = dead_client.first_records({orders: (0, 5)}, timeout=timeout)
    assert answer.failures == {orders: ErrorKind.TIMEOUT}
    assert time.monotonic() - started < 30  # librdkafka's default is 60 s
