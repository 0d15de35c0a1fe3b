"""Offsets by time for more partitions than allowed requests."""

from typing import cast

from fake_clusters import LoggedCluster

from mm2slo_audit.scope.cluster_readings import read_offsets_at
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient

PARTITIONS = 300
"""Two of them share a request."""


def test_read_offsets_at_many_partitions_combines_neighbours() -> None:
    cluster = LoggedCluster("t", [(0, range(1_000, 2_000))] * PARTITIONS)
    moments = {TopicPartition("t", number): 1_000 + number for number in range(PARTITIONS)}
    client = cast("ClusterClient", cluster)
    low = read_offsets_at(client, moments)
    assert [low[TopicPartition("t", number)] for number in range(4)] == [0, 0, 2, 2]
    high = read_offsets_at(client, moments, at_least=True)
    assert [high[TopicPartition("t", number)] for number in range(4)] == [1, 1, 3, 3]
    assert len(cluster.requests) == PARTITIONS
    assert {partitions for _at, partitions in cluster.requests} == {2}


def test_read_offsets_at_few_partitions_is_exact() -> None:
    cluster = LoggedCluster("t", [(0, range(1_000, 2_000))] * 3)
    moments = {TopicPartition("t", number): 1_000 + number for number in range(3)}
    client = cast("ClusterClient", cluster)
    for at_least in (False, True):
        found = read_offsets_at(client, moments, at_least=at_least)
        assert list(found.values()) == [0, 1, 2]
