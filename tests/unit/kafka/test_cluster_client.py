import time
from collections.abc import Callable

import pytest
from tests.unit.kafka.conftest import MockCluster

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

MAX_SECONDS = 30.0
"""Far above a timeout of 0.5 s on a machine that stalls, below librdkafka's default of 60 s."""

DEAD_CALLS: dict[str, Callable[[ClusterClient], object]] = {
    "topics": lambda client: client.topics(0.5),
    "identify": lambda client: client.identify(["orders"], 0.5),
    "topic_configs": lambda client: client.topic_configs(["orders"], 0.5),
    "groups": lambda client: client.groups(0.5),
    "create_topic": lambda client: client.create_topic("orders", partitions=1, timeout=0.5),
}


@pytest.mark.parametrize("name", DEAD_CALLS)
def test_request_to_unreachable_cluster_fails_within_timeout(
    dead_client: ClusterClient, name: str
) -> None:
    started = time.monotonic()
    with pytest.raises(KafkaOperationError) as caught:
        DEAD_CALLS[name](dead_client)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.cluster == "eu"
    assert time.monotonic() - started < MAX_SECONDS


def test_group_offsets_of_unreachable_cluster_are_errors(
    dead_client: ClusterClient,
) -> None:
    groups = [f"group-{number}" for number in range(20)]
    started = time.monotonic()
    answers = dead_client.group_offsets(groups, timeout=0.5)
    assert sorted(answers) == sorted(groups)
    assert all(isinstance(each.found, KafkaOperationError) for each in answers.values())
    assert time.monotonic() - started < MAX_SECONDS


def test_topics_lists_partition_counts(
    mock_cluster: MockCluster, client: ClusterClient, topic: str
) -> None:
    mock_cluster.write(topic, [b"a"])
    listing = client.topics()
    assert listing.partition_counts[topic] == 4
    assert listing.cluster_id
    assert listing.errors == {}
    assert listing.leaders[topic] == (1, 1, 1, 1)


def test_timeout_after_failed_tls_handshake_reports_tls(
    mock_cluster: MockCluster,
) -> None:
    # The mock cluster does not support TLS.
    properties = {**mock_cluster.properties, "security.protocol": "SSL"}
    with ClusterClient("us", properties) as client, pytest.raises(KafkaOperationError) as caught:
        client.topics(1.0)
    assert caught.value.kind is ErrorKind.TLS
    # The rest of the message depends on which side fails first.
    assert "in state SSL_HANDSHAKE" in caught.value.detail
