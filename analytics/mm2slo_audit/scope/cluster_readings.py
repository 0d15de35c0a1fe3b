"""Clients of the clusters; their topics, topic settings, first timestamps and offsets by time."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_core.config.config_model import Config
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation


class ClusterClients(dict[str, ClusterClient]):
    """Clients by alias, each opened when it is needed: another cluster's problem is none.

    Raises KafkaOperationError for invalid properties.
    """

    def __init__(self, config: Config, opened: ExitStack) -> None:
        super().__init__()
        self._clusters = config.clusters
        self._opened = opened

    def __missing__(self, alias: str) -> ClusterClient:
        client = ClusterClient(alias, self._clusters[alias].librdkafka_properties())
        self[alias] = self._opened.enter_context(client)
        return client


@contextmanager
def open_clients(config: Config) -> Iterator[ClusterClients]:
    """Clients of the configured clusters, which are closed at the end."""
    with ExitStack() as opened:
        yield ClusterClients(config, opened)


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


_TIMEOUT: Final = 30.0
_MAX_TIMES: Final = 200


def read_first_timestamps(
    client: ClusterClient,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    isolation: Isolation = "read_uncommitted",
) -> dict[TopicPartition, int]:
    """Epoch ms of the first record in [offset, end) of each partition, if there is one.

    Raises KafkaOperationError.
    """
    wanted = {key: found for key, found in ranges.items() if found[0] < found[1]}
    if not wanted:
        return {}
    answer = client.first_records(wanted, isolation, _TIMEOUT)
    return {
        key: record.timestamp_ms
        for key, record in answer.found.items()
        if record is not None and record.timestamp_ms is not None
    }


def read_offsets_at(
    client: ClusterClient, timestamps: Mapping[TopicPartition, int], *, at_least: bool = False
) -> dict[TopicPartition, int]:
    """The first offset at or after a timestamp (epoch ms) for each partition.

    To limit requests, neighbouring timestamps are combined to the earliest (offsets may be too
    low), or with *at_least* to the latest (offsets may be too high). Raises KafkaOperationError.
    """
    by_timestamp: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    ordered = sorted(timestamps.items(), key=lambda item: item[1])
    width = len(ordered) // _MAX_TIMES + 1
    for start in range(0, len(ordered), width):
        group = ordered[start : start + width]
        timestamp = group[-1 if at_least else 0][1]
        by_timestamp[timestamp] += [key for key, _timestamp in group]
    found: dict[TopicPartition, int] = {}
    for timestamp, keys in by_timestamp.items():
        found |= client.offsets_at(keys, max(0, timestamp) / 1000).offsets
    return found
