"""Connector and task states in Connect's status topic.

Format: Kafka's `KafkaStatusBackingStore`; keys `status-connector-<name>` and
`status-task-<name>-<n>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from mm2slo_core.records.connect_json import (
    decode_object,
    decode_text,
    get_field,
    split_numbered_name,
    unexpected_shape,
)
from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import require_key

_KIND = "status"
_CONNECTOR = "status-connector-"
_TASK = "status-task-"


class ConnectState(StrEnum):
    """`AbstractStatus.State` of Kafka Connect; a closed list."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


class StatusKey(NamedTuple):
    """A connector, or one of its tasks; *task* is None for the connector itself."""

    connector: str
    task: int | None


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """State of a connector on the worker *worker_id*.

    *generation* is the group generation of the writer; *trace* is the stack trace of a failure,
    omitted from the repr because it may contain secrets.
    """

    connector: str
    state: ConnectState
    worker_id: str
    generation: int
    trace: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """State of one task; fields as in ConnectorStatus."""

    connector: str
    task: int
    state: ConnectState
    worker_id: str
    generation: int
    trace: str | None = field(default=None, repr=False)


def decode_status(
    key: bytes | None, value: bytes | None
) -> ConnectorStatus | TaskStatus | Tombstone[StatusKey] | None:
    """Decode a record of the status topic. Raises DecodeError.

    None for a record without a state: the topics that a connector has used.
    """
    status_key = _decode_key(require_key(_KIND, key))
    if status_key is None:
        return None
    if value is None:
        return Tombstone(status_key)
    status = decode_object(_KIND, value)
    state = _state(status)
    worker = get_field(_KIND, status, "worker_id", str)
    generation = get_field(_KIND, status, "generation", int)
    trace = None if status.get("trace") is None else get_field(_KIND, status, "trace", str)
    if status_key.task is None:
        return ConnectorStatus(status_key.connector, state, worker, generation, trace)
    return TaskStatus(status_key.connector, status_key.task, state, worker, generation, trace)


def _state(status: dict[str, Any]) -> ConnectState:
    name = get_field(_KIND, status, "state", str)
    try:
        return ConnectState(name)
    except ValueError:
        raise unexpected_shape(_KIND, f"unknown state {name[:40]!r}") from None


def _decode_key(key: bytes) -> StatusKey | None:
    text = decode_text(_KIND, key)
    if text.startswith(_CONNECTOR):
        return StatusKey(text.removeprefix(_CONNECTOR), None)
    if text.startswith(_TASK):
        task = split_numbered_name(text.removeprefix(_TASK))
        if task is None:
            raise unexpected_shape(_KIND, "a task key without a task number")
        return StatusKey(*task)
    return None
