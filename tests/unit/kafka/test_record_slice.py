from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError
from tests.unit.kafka.conftest import MockCluster

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka import record_slice
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError, translate
from mm2slo_kafka.record_slice import read_slice

ORDERS = TopicPartition("orders", 0)


def message(offset: int | None = None, error: int | None = None) -> Any:
    return SimpleNamespace(
        error=lambda: None if error is None else KafkaError(error),
        partition=lambda: 0,
        timestamp=lambda: (1, 1_000),
        offset=lambda: offset,
        key=lambda: None,
        value=lambda: b"x",
        headers=lambda: None,
    )


def refusing(*messages: Any) -> ClusterClient:
    """A cluster whose consumer gets *messages*."""
    waiting = list(messages)
    consumer = SimpleNamespace(
        assign=lambda _partitions: None,
        poll=lambda _timeout: waiting.pop(0),
        consume=lambda _count, timeout: [],
        close=lambda: None,
    )
    handles = SimpleNamespace(
        consumer=lambda *_args, **_options: consumer,
        check_login=lambda _operation: None,
        errors=lambda _operation: nullcontext(),
        problem=lambda error, operation: translate(error, "eu", operation),
    )
    return cast("ClusterClient", SimpleNamespace(handles=handles))


def test_slice_has_the_records_from_an_offset_on(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a", b"b", b"c", b"d"])
    orders = TopicPartition(topic, 0)
    assert [each.value for each in read_slice(client, orders, 1, 2)] == [b"b", b"c"]
    assert [each.value for each in read_slice(client, orders, 3, 2)] == [b"d"]


def test_refused_group_does_not_matter_without_membership() -> None:
    client = refusing(
        message(error=KafkaError.GROUP_AUTHORIZATION_FAILED),
        message(offset=7),
        message(error=KafkaError._PARTITION_EOF),
    )
    assert [each.offset for each in read_slice(client, ORDERS, 7, 10)] == [7]


def test_refused_topic_is_an_error() -> None:
    client = refusing(message(error=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaOperationError, match="reading orders-0 on cluster eu failed"):
        read_slice(client, ORDERS, 7, 10)


def test_repeated_errors_without_a_record_end_in_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_slice, "_TIMEOUT_SECONDS", 0.1)
    retriable = SimpleNamespace(code=lambda: KafkaError._TRANSPORT, retriable=lambda: True)
    failing = SimpleNamespace(error=lambda: retriable)
    consumer = SimpleNamespace(
        assign=lambda _partitions: None,
        poll=lambda _timeout: failing,
        consume=lambda _count, timeout: [],
        close=lambda: None,
    )
    handles = SimpleNamespace(
        consumer=lambda *_args, **_options: consumer,
        check_login=lambda _operation: None,
        errors=lambda _operation: nullcontext(),
    )
    with pytest.raises(TimeoutError, match=r"no answer in 0\.1 s"):
        read_slice(cast("ClusterClient", SimpleNamespace(handles=handles)), ORDERS, 7, 10)
