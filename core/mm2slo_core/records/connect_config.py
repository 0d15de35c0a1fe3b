"""Connector configurations and task assignments from Connect's configuration topic.

Format: Kafka's `KafkaConfigBackingStore`; keys `connector-<name>` and `task-<name>-<n>`. The
values may hold credentials in plain text: only the settings in `SAFE_SETTINGS` and the
assignment are kept, everything else is dropped while it is read.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - needed at run time by dataclass users
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from mm2slo_core.records.connect_json import decode_object, decode_text, field, numbered, unexpected
from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import present_key
from mm2slo_core.topology import TopicPartition

_KIND = "configuration"
_CONNECTOR = "connector-"
_TASK = "task-"

SAFE_SETTINGS = frozenset(
    {
        "name",
        "connector.class",
        "tasks.max",
        "enabled",
        "source.cluster.alias",
        "target.cluster.alias",
        "topics",
        "topics.exclude",
        "groups",
        "groups.exclude",
        "config.properties.exclude",
        "replication.policy.class",
        "replication.policy.separator",
        "replication.policy.internal.topic.separator.enabled",
        "replication.factor",
        "offset-syncs.topic.location",
        "offset.lag.max",
        "offsets.storage.topic",
        "exactly.once.support",
        "exactly.once.source.support",
        "transaction.boundary",
        "errors.tolerance",
        "emit.heartbeats.enabled",
        "emit.heartbeats.interval.seconds",
        "emit.checkpoints.enabled",
        "emit.checkpoints.interval.seconds",
        "emit.offset-syncs.enabled",
        "sync.group.offsets.enabled",
        "sync.group.offsets.interval.seconds",
        "sync.topic.configs.enabled",
        "sync.topic.configs.interval.seconds",
        "sync.topic.acls.enabled",
        "sync.topic.acls.interval.seconds",
        "refresh.topics.enabled",
        "refresh.topics.interval.seconds",
        "refresh.groups.enabled",
        "refresh.groups.interval.seconds",
        "heartbeats.replication.enabled",
        "consumer.isolation.level",
        "source.consumer.isolation.level",
    }
)
"""Settings that are read: none of them is a credential."""


class ConfigKey(NamedTuple):
    """A connector, or one of its tasks; *task* is None for the connector itself."""

    connector: str
    task: int | None


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The settings of a connector that are safe to keep, by name."""

    connector: str
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """What one task works on: source partitions (MirrorSourceConnector) or groups (checkpoints).

    Empty where the task's kind has no such list.
    """

    connector: str
    task: int
    partitions: tuple[TopicPartition, ...]
    groups: tuple[str, ...]


def decode_config(
    key: bytes | None, value: bytes | None
) -> ConnectorConfig | TaskAssignment | Tombstone[ConfigKey] | None:
    """Read a record of the configuration topic. Raises DecodeError.

    None stands for what the exporter has no use for: commits, target states, session keys.
    """
    what = _decode_key(present_key(_KIND, key))
    if what is None:
        return None
    if value is None:
        return Tombstone(what)
    properties = field(_KIND, decode_object(_KIND, value), "properties", dict)
    if what.task is None:
        kept = {
            name: text for name in SAFE_SETTINGS if isinstance(text := properties.get(name), str)
        }
        return ConnectorConfig(what.connector, MappingProxyType(kept))
    return TaskAssignment(
        what.connector,
        what.task,
        tuple(_partition(name) for name in _entries(properties.get("task.assigned.partitions"))),
        tuple(_entries(properties.get("task.assigned.groups"))),
    )


def _entries(text: object) -> list[str]:
    return [entry for entry in text.split(",") if entry] if isinstance(text, str) else []


def _partition(text: str) -> TopicPartition:
    found = numbered(text.strip())
    if found is None:
        raise unexpected(_KIND, "an assigned partition that is not topic-number")
    return TopicPartition(*found)


def _decode_key(key: bytes) -> ConfigKey | None:
    text = decode_text(_KIND, key)
    if text.startswith(_CONNECTOR):
        return ConfigKey(text.removeprefix(_CONNECTOR), None)
    if text.startswith(_TASK):
        task = numbered(text.removeprefix(_TASK))
        if task is None:
            raise unexpected(_KIND, "a task key without a task number")
        return ConfigKey(*task)
    return None
