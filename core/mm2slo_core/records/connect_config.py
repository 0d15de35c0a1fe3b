"""Connector configurations and task assignments from Connect's configuration topic.

Format: Kafka's `KafkaConfigBackingStore`; keys `connector-<name>`, `task-<name>-<n>` and, of
workers with exactly-once support, `tasks-fencing-<name>`. Values
may contain credentials in plain text: only the settings in `SAFE_SETTINGS`, some of transforms, and
the assignment are decoded.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - dataclasses need it at run time
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from mm2slo_core.record_transforms import TRANSFORM_SETTING
from mm2slo_core.records.connect_json import (
    decode_object,
    decode_text,
    get_field,
    split_numbered_name,
    unexpected_shape,
)
from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import require_key
from mm2slo_core.topology import TopicPartition, shared_partition

_KIND = "configuration"
_CONNECTOR = "connector-"
_TASK = "task-"
_FENCING = "tasks-fencing-"

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
        "topic.filter.class",
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
        "transforms",
    }
)
"""Settings that are decoded; none is a credential."""


class ConfigKey(NamedTuple):
    """A connector, or one of its tasks; *task* is None for the connector itself."""

    connector: str
    task: int | None


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The safe settings of a connector, by name."""

    connector: str
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """Source partitions (MirrorSourceConnector) or groups (MirrorCheckpointConnector) of a task.

    Both are empty for other connectors.
    """

    connector: str
    task: int
    partitions: tuple[TopicPartition, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskFencing:
    """A worker with exactly-once support has fenced earlier tasks of a connector.

    The record remains when exactly-once support is switched off.
    """

    connector: str


def decode_config(
    key: bytes | None, value: bytes | None
) -> ConnectorConfig | TaskAssignment | TaskFencing | Tombstone[ConfigKey] | None:
    """Decode a record of the configuration topic. Raises DecodeError.

    None for records that are not used: commits, target states, session keys.
    """
    text = decode_text(_KIND, require_key(_KIND, key))
    if text.startswith(_FENCING):
        return TaskFencing(text.removeprefix(_FENCING)) if value is not None else None
    config_key = _decode_key(text)
    if config_key is None:
        return None
    if value is None:
        return Tombstone(config_key)
    properties = get_field(_KIND, decode_object(_KIND, value), "properties", dict)
    if config_key.task is None:
        kept = {
            name: text
            for name, text in properties.items()
            if (name in SAFE_SETTINGS or TRANSFORM_SETTING.fullmatch(name))
            and isinstance(text, str)
        }
        return ConnectorConfig(config_key.connector, MappingProxyType(kept))
    return TaskAssignment(
        config_key.connector,
        config_key.task,
        tuple(_partition(name) for name in _entries(properties.get("task.assigned.partitions"))),
        tuple(_entries(properties.get("task.assigned.groups"))),
    )


def _entries(text: object) -> list[str]:
    return [entry for entry in text.split(",") if entry] if isinstance(text, str) else []


def _partition(text: str) -> TopicPartition:
    found = split_numbered_name(text.strip())
    if found is None:
        raise unexpected_shape(_KIND, "an assigned partition that is not topic-number")
    return shared_partition(*found)


def _decode_key(text: str) -> ConfigKey | None:
    if text.startswith(_CONNECTOR):
        return ConfigKey(text.removeprefix(_CONNECTOR), None)
    if text.startswith(_TASK):
        task = split_numbered_name(text.removeprefix(_TASK))
        if task is None:
            raise unexpected_shape(_KIND, "a task key without a task number")
        return ConfigKey(*task)
    return None
