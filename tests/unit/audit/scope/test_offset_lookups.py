"""Offsets by time of more partitions than there may be requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from told_clusters import LoggedCluster

from mm2slo_audit.scope.offset_lookups import offsets_at
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from mm2slo_kafka.cluster_client import ClusterClient

PARTITIONS = 300
"""Two of them are asked for together."""


def test_neighbours_share_a_moment_that_errs_to_the_side_that_is_asked_for() -> None:
    cluster = LoggedCluster("t", [(0, range(1_000, 2_000))] * PARTITIONS)
    moments = {TopicPartition("t", number): 1_000 + number for number in range(PARTITIONS)}
    client = cast("ClusterClient", cluster)
    low = offsets_at(client, moments)
    assert [low[TopicPartition("t", number)] for number in range(4)] == [0, 0, 2, 2]
    high = offsets_at(client, moments, at_least=True)
    assert [high[TopicPartition("t", number)] for number in range(4)] == [1, 1, 3, 3]
    assert len(cluster.asked) == PARTITIONS
    assert {partitions for _at, partitions in cluster.asked} == {2}


def test_few_partitions_have_a_moment_of_their_own() -> None:
    cluster = LoggedCluster("t", [(0, range(1_000, 2_000))] * 3)
    moments = {TopicPartition("t", number): 1_000 + number for number in range(3)}
    client = cast("ClusterClient", cluster)
    for at_least in (False, True):
        found = offsets_at(client, moments, at_least=at_least)
        assert list(found.values()) == [0, 1, 2]
