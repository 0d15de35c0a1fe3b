"""Topics of the clusters, and settings of audited topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.kafka_errors import ErrorKind

_SETTINGS: Final = frozenset({"cleanup.policy", "delete.retention.ms", "message.timestamp.type"})


@dataclass(frozen=True, slots=True)
class ClusterTopics:
    """Topics of one cluster with partition counts, and topics with an error."""

    counts: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, ErrorKind] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Topic settings that affect the comparison."""

    compacted: bool = False
    timestamps: TimestampType = TimestampType.CREATE
    tombstones_kept: int = 0
    """`delete.retention.ms`; 0: unknown."""


def list_cluster_topics(
    clients: Mapping[str, ClusterClient], aliases: Iterable[str]
) -> tuple[dict[str, ClusterTopics], dict[str, KafkaOperationError]]:
    """The topics of each cluster, and the errors of clusters that could not be read."""
    listings, problems = {}, {}
    for alias in sorted(set(aliases)):
        try:
            found = clients[alias].topics()
        except KafkaOperationError as problem:
            problems[alias] = problem
        else:
            listings[alias] = ClusterTopics(found.partition_counts, found.errors)
    return listings, problems


def read_topic_settings(client: ClusterClient, topics: Collection[str]) -> dict[str, TopicSettings]:
    """Settings of *topics*; unreadable ones count as Kafka's defaults.

    Raises KafkaOperationError if the cluster does not answer.
    """
    if not topics:
        return {}
    reading = client.topic_configs(sorted(topics), defaults_of=_SETTINGS)
    found = {}
    for topic, entries in reading.configs.items():
        values = {name: entry.value for name, entry in entries.items()}
        found[topic] = TopicSettings(
            "compact" in (values.get("cleanup.policy") or ""),
            TimestampType(values.get("message.timestamp.type") or TimestampType.CREATE),
            int(values.get("delete.retention.ms") or 0),
        )
    return found
