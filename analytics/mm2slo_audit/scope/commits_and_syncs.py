"""MirrorMaker 2's committed offsets and offset syncs of a flow."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_audit.scope.known_position import Commit
from mm2slo_audit.scope.sync_history import SyncHistory, SyncPoint
from mm2slo_audit.scope.topic_reader import read_to_end
from mm2slo_core.config.flow_config import Engine
from mm2slo_core.internal_topics import internal_topics
from mm2slo_core.records import DecodeError, OffsetSync, SourceOffset, Tombstone
from mm2slo_core.topic_selection import replication_policy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitsAndSyncs:
    """Commits and syncs by source partition."""

    commits: Mapping[TopicPartition, Commit] = field(default_factory=dict)
    syncs: Mapping[TopicPartition, SyncHistory] = field(default_factory=dict)


def read_commits_and_syncs(
    flow: FlowConfig, clients: Mapping[str, ClusterClient], topics: Collection[str]
) -> CommitsAndSyncs:
    """Read both internal topics of *flow* to their ends, for the source *topics*.

    Empty for other engines than MirrorMaker 2. Raises KafkaOperationError or TimeoutError.
    """
    if flow.engine is not Engine.MIRRORMAKER2:
        return CommitsAndSyncs()
    return CommitsAndSyncs(_commits(flow, clients, topics), _syncs(flow, clients, topics))


def _commits(
    flow: FlowConfig, clients: Mapping[str, ClusterClient], topics: Collection[str]
) -> Mapping[TopicPartition, Commit]:
    placed = internal_topics(flow.flow, replication_policy(flow), flow.offset_syncs_location)
    topic = flow.connect.offsets_topic or placed.connect_offsets.topic
    found: dict[TopicPartition, Commit] = {}
    # With exactly-once the offsets are part of the transaction of the records.
    isolation: Isolation = "read_committed" if flow.exactly_once else "read_uncommitted"
    for record in read_to_end(clients[flow.flow.target], topic, isolation=isolation):
        try:
            decoded = SourceOffset.decode(record.key, record.value)
        except DecodeError as error:
            logger.warning("a record of %s cannot be read: %s", topic, error)
            continue
        if decoded is None:
            continue
        key = decoded.key
        if key.connector != flow.connect.source_connector or key.cluster != flow.flow.source:
            continue
        if isinstance(decoded, Tombstone):
            found.pop(key.topic_partition, None)
        elif key.topic_partition.topic in topics:
            found[key.topic_partition] = Commit(decoded.offset, (record.timestamp_ms or 0) / 1000)
    return found


def _syncs(
    flow: FlowConfig, clients: Mapping[str, ClusterClient], topics: Collection[str]
) -> Mapping[TopicPartition, SyncHistory]:
    placed = internal_topics(flow.flow, replication_policy(flow), flow.offset_syncs_location)
    cluster, topic = placed.offset_syncs
    found: defaultdict[TopicPartition, SyncHistory] = defaultdict(SyncHistory)
    for record in read_to_end(clients[cluster], topic):
        try:
            decoded = OffsetSync.decode(record.key, record.value)
        except DecodeError as error:
            logger.warning("a record of %s cannot be read: %s", topic, error)
            continue
        if isinstance(decoded, Tombstone):
            found.pop(decoded.key, None)
        elif decoded.topic_partition.topic in topics:
            at = (record.timestamp_ms or 0) / 1000
            found[decoded.topic_partition].add(
                SyncPoint(decoded.upstream_offset, decoded.downstream_offset, at)
            )
    return found
