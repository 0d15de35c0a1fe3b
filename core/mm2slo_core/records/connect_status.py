"""Connector and task states from Connect's status topic.

Format: Kafka's `KafkaStatusBackingStore`; keys `status-connector-<name>` and
`status-task-<name>-<n>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from mm2slo_core.records.connect_json import decode_object, decode_text, numbered, unexpected
from mm2slo_core.records.connect_json import field as member
from mm2slo_core.records.decode_errors import Tombstone
from mm2slo_core.records.kafka_encoding import present_key

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

    *generation* is the group generation that wrote it; *trace* is the stack trace of a failure,
    left out of the repr because plugins put what they like into it.
    """

    connector: str
    state: ConnectState
    worker_id: str
    generation: int
    trace: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """State of one task; members as in ConnectorStatus."""

    connector: str
    task: int
    state: ConnectState
    worker_id: str
    generation: int
    trace: str | None = field(default=None, repr=False)


def decode_status(
    key: bytes | None, value: bytes | None
) -> ConnectorStatus | TaskStatus | Tombstone[StatusKey] | None:
    """Read a record of the status topic. Raises DecodeError.

    None stands for a record that says nothing of a state: the topics a connector has used.
    """
    what = _decode_key(present_key(_KIND, key))
    if what is None:
        return None
    if value is None:
        return Tombstone(what)
    status = decode_object(_KIND, value)
    state = _state(status)
    worker = member(_KIND, status, "worker_id", str)
    generation = member(_KIND, status, "generation", int)
    trace = None if status.get("trace") is None else member(_KIND, status, "trace", str)
    if what.task is None:
        return ConnectorStatus(what.connector, state, worker, generation, trace)
    return TaskStatus(what.connector, what.task, state, worker, generation, trace)


def _state(status: dict[str, Any]) -> ConnectState:
    name = member(_KIND, status, "state", str)
    try:
        return ConnectState(name)
    except ValueError:
        raise unexpected(_KIND, f"state {name[:40]!r}, which Connect does not have") from None


def _decode_key(key: bytes) -> StatusKey | None:
    text = decode_text(_KIND, key)
    if text.startswith(_CONNECTOR):
        return StatusKey(text.removeprefix(_CONNECTOR), None)
    if text.startswith(_TASK):
        task = numbered(text.removeprefix(_TASK))
        if task is None:
            raise unexpected(_KIND, "a task key without a task number")
        return StatusKey(*task)
    return None
