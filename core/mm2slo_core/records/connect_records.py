"""Records of Kafka Connect's topics: configurations, statuses and source offsets.

Configurations: format: Kafka's `KafkaConfigBackingStore`; keys `connector-<name>`,
`task-<name>-<n>` and, of workers with exactly-once support, `tasks-fencing-<name>`. Values may
contain credentials in plain text: only the settings in `SAFE_SETTINGS`, some of transforms, and the
assignment are decoded.

Statuses: format: Kafka's `KafkaStatusBackingStore`; keys `status-connector-<name>` and
`status-task-<name>-<n>`.

Source offsets: format: `OffsetStorageWriter` with a schemaless JsonConverter, in the offset storage
topic.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from mm2slo_core.records.mirror_records import (
    DecodeError,
    DecodeReason,
    KeyCache,
    Tombstone,
    require_key,
)
from mm2slo_core.topic_filters import TRANSFORM_SETTING
from mm2slo_core.topology import TopicPartition, shared_partition

_CONFIGURATION_KIND = "configuration"
_CONNECTOR_PREFIX = "connector-"
_TASK_PREFIX = "task-"
_FENCING_PREFIX = "tasks-fencing-"

SAFE_SETTINGS = frozenset(
    {
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
        "offset-syncs.topic.location",
        "offsets.storage.topic",
        "emit.heartbeats.enabled",
        "emit.heartbeats.interval.seconds",
        "emit.checkpoints.interval.seconds",
        "sync.group.offsets.enabled",
        "sync.group.offsets.interval.seconds",
        "heartbeats.replication.enabled",
        "consumer.isolation.level",
        "source.consumer.isolation.level",
        "tasks.max",
        "consumer.max.partition.fetch.bytes",
        "source.consumer.max.partition.fetch.bytes",
        "consumer.receive.buffer.bytes",
        "source.consumer.receive.buffer.bytes",
        "producer.override.batch.size",
    }
)
"""The settings that are read, beside those of transforms; none is a credential."""


class ConnectorKey(NamedTuple):
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
    """Source partitions of a task of MirrorSourceConnector; none for other connectors."""

    connector: str
    task: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class TaskFencing:
    """A worker with exactly-once support has fenced earlier tasks of a connector.

    The record remains when exactly-once support is switched off.
    """

    connector: str


def decode_config(
    key: bytes | None, value: bytes | None
) -> ConnectorConfig | TaskAssignment | TaskFencing | Tombstone[ConnectorKey] | None:
    """Decode a record of the configuration topic. Raises DecodeError.

    None for records that are not used: commits, target states, session keys.
    """
    text = decode_text(_CONFIGURATION_KIND, require_key(_CONFIGURATION_KIND, key))
    if text.startswith(_FENCING_PREFIX):
        return TaskFencing(text.removeprefix(_FENCING_PREFIX)) if value is not None else None
    config_key = _decode_connector_key(_CONFIGURATION_KIND, text)
    if config_key is None:
        return None
    if value is None:
        return Tombstone(config_key)
    properties = get_field(
        _CONFIGURATION_KIND, decode_object(_CONFIGURATION_KIND, value), "properties", dict
    )
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
    )


def _decode_connector_key(kind: str, text: str) -> ConnectorKey | None:
    if text.startswith(_CONNECTOR_PREFIX):
        return ConnectorKey(text.removeprefix(_CONNECTOR_PREFIX), None)
    if text.startswith(_TASK_PREFIX):
        task = split_numbered_name(text.removeprefix(_TASK_PREFIX))
        if task is None:
            raise unexpected_shape(kind, "a task key without a task number")
        return ConnectorKey(*task)
    return None


def _entries(text: object) -> list[str]:
    return [entry for entry in text.split(",") if entry] if isinstance(text, str) else []


def _partition(text: str) -> TopicPartition:
    found = split_numbered_name(text.strip())
    if found is None:
        raise unexpected_shape(
            _CONFIGURATION_KIND, "an assigned partition that is not topic-number"
        )
    return shared_partition(*found)


_STATUS_KIND = "status"
_STATUS_PREFIX = "status-"


class ConnectState(StrEnum):
    """`AbstractStatus.State` of Kafka Connect; a closed list."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """State of a connector, or of one of its tasks; the trace of a failure is not read."""

    connector: str
    task: int | None
    state: ConnectState


def decode_status(
    key: bytes | None, value: bytes | None
) -> ConnectorStatus | Tombstone[ConnectorKey] | None:
    """Decode a record of the status topic. Raises DecodeError.

    None for a record without a state: the topics that a connector has used.
    """
    text = decode_text(_STATUS_KIND, require_key(_STATUS_KIND, key))
    if not text.startswith(_STATUS_PREFIX):
        return None
    status_key = _decode_connector_key(_STATUS_KIND, text.removeprefix(_STATUS_PREFIX))
    if status_key is None:
        return None
    if value is None:
        return Tombstone(status_key)
    name = get_field(_STATUS_KIND, decode_object(_STATUS_KIND, value), "state", str)
    try:
        return ConnectorStatus(*status_key, ConnectState(name))
    except ValueError:
        raise unexpected_shape(_STATUS_KIND, f"unknown state {name[:40]!r}") from None


_SOURCE_OFFSET_KIND = "source offset"
_KEY_PARTS = 2


class SourceOffsetKey(NamedTuple):
    """A source partition of one connector; *cluster* is the source alias."""

    connector: str
    cluster: str
    topic_partition: TopicPartition


class SourceOffset(NamedTuple):
    """*offset* is the last source record that the target acknowledged; the task resumes after it.

    Committed every `offset.flush.interval.ms` (60 s by default), so up to that old.
    """

    connector: str
    cluster: str
    topic_partition: TopicPartition
    offset: int

    @staticmethod
    def decode(
        key: bytes | None, value: bytes | None
    ) -> SourceOffset | Tombstone[SourceOffsetKey] | None:
        """Decode a record of the offset storage topic. Raises DecodeError.

        None for a record of another kind of connector, because the topic is shared.
        """
        offset_key = _decode_source_offset_key(require_key(_SOURCE_OFFSET_KIND, key))
        if offset_key is None:
            return None
        if value is None:
            # Connect's REST API resets offsets so (KIP-875): the task starts as without a commit.
            return Tombstone(offset_key)
        offset = get_field(
            _SOURCE_OFFSET_KIND, decode_object(_SOURCE_OFFSET_KIND, value), "offset", int
        )
        if offset < 0:
            raise unexpected_shape(_SOURCE_OFFSET_KIND, f"offset {offset}, expected >= 0")
        return SourceOffset(
            offset_key.connector, offset_key.cluster, offset_key.topic_partition, offset
        )

    @property
    def key(self) -> SourceOffsetKey:
        return SourceOffsetKey(self.connector, self.cluster, self.topic_partition)

    @property
    def next_offset(self) -> int:
        """The first offset that a task would read after a restart.

        `MirrorSourceTask.initializeConsumer` seeks to the committed offset + 1.
        """
        return self.offset + 1

    def encode_key(self) -> bytes:
        """Encode the key; the order of its fields is Connect's, not part of the format."""
        topic, partition = self.topic_partition
        where = {"cluster": self.cluster, "partition": partition, "topic": topic}
        return _compact([self.connector, where])

    def encode_value(self) -> bytes:
        return _compact({"offset": self.offset})


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _decode_new_source_offset_key(key: bytes) -> SourceOffsetKey | None:
    # The order of the fields is that of Java's HashMap, so keys are compared after decoding.
    parts = decode_json(_SOURCE_OFFSET_KIND, key)
    if not isinstance(parts, list) or len(parts) != _KEY_PARTS:
        raise unexpected_shape(_SOURCE_OFFSET_KIND, "a key that is not [connector, partition]")
    connector, where = parts
    if not isinstance(connector, str):
        raise unexpected_shape(_SOURCE_OFFSET_KIND, "a key whose connector name is not a string")
    if not isinstance(where, dict) or not where.keys() >= {"cluster", "topic", "partition"}:
        return None
    partition = get_field(_SOURCE_OFFSET_KIND, where, "partition", int)
    if partition < 0:
        raise unexpected_shape(_SOURCE_OFFSET_KIND, f"partition {partition}, expected >= 0")
    topic = sys.intern(get_field(_SOURCE_OFFSET_KIND, where, "topic", str))
    cluster = sys.intern(get_field(_SOURCE_OFFSET_KIND, where, "cluster", str))
    return SourceOffsetKey(sys.intern(connector), cluster, shared_partition(topic, partition))


def decode_text(kind: str, data: bytes) -> str:
    """Decode UTF-8 text, or raise DecodeError."""
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise DecodeError(kind, DecodeReason.INVALID_UTF8, problem.reason) from None


def decode_json(kind: str, data: bytes) -> Any:
    """Decode JSON, or raise DecodeError without the cause, which would quote *data*."""
    text = decode_text(kind, data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError(
            kind, DecodeReason.INVALID_JSON, f"{len(data)} bytes that are not JSON"
        ) from None


def get_field(kind: str, value: dict[str, Any], name: str, expected: type) -> Any:
    """Return the field *name* of type *expected*, or raise DecodeError; a bool is not an int."""
    found = value.get(name)
    if not isinstance(found, expected) or isinstance(found, bool):
        raise unexpected_shape(
            kind, f"{name!r} is {type(found).__name__}, expected {expected.__name__}"
        )
    return found


def unexpected_shape(kind: str, detail: str) -> DecodeError:
    """Return the error for JSON that Connect does not write."""
    return DecodeError(kind, DecodeReason.UNEXPECTED_SHAPE, detail)


_decode_source_offset_key = KeyCache(_decode_new_source_offset_key).__getitem__
_NUMBER = re.compile(r"[0-9]{1,10}")


def decode_object(kind: str, data: bytes) -> dict[str, Any]:
    """Decode a JSON object, or raise DecodeError."""
    value = decode_json(kind, data)
    if not isinstance(value, dict):
        raise unexpected_shape(kind, f"a JSON {type(value).__name__}, expected an object")
    return value


def decode_versioned(kind: str, data: bytes, version: int) -> dict[str, Any]:
    """Decode a JSON object of mm2slo with *version* in its field `v`, or raise DecodeError."""
    found = decode_object(kind, data)
    if found.get("v") != version:
        raise DecodeError(
            kind,
            DecodeReason.UNKNOWN_VERSION,
            f"version {found.get('v')!r}, expected {version}; written by a newer mm2slo?",
        )
    return found


def split_numbered_name(name: str) -> tuple[str, int] | None:
    """Split a task name, as in `name-3`, at its last dash; None without a number."""
    head, dash, number = name.rpartition("-")
    if not dash or not _NUMBER.fullmatch(number):
        return None
    return head, int(number)
