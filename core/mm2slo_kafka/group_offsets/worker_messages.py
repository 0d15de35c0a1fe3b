"""Messages between the worker process and its parent, pickled over a private socket pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_kafka.group_offsets.group_requests import GroupOffsets
    from mm2slo_kafka.kafka_errors import ErrorKind


class Subject(Enum):
    """What is read of each group."""

    OFFSETS = "reading committed offsets of"
    MEMBERS = "describing"

    def operation(self, group: str) -> str:
        """The operation, for error messages."""
        return f"{self.value} group {group!r}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The first message: the cluster to read. *properties* are librdkafka's."""

    alias: str
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GroupsRequest:
    """Reads *groups* in this order, as many as can be requested *within* so many seconds.

    *timeout* bounds each request, *first_window* the requests in flight before the first answer.
    """

    subject: Subject
    groups: tuple[str, ...]
    first_window: int
    within: float
    timeout: float


@dataclass(frozen=True, slots=True)
class GroupFailure:
    """A KafkaOperationError without the fields that the parent knows."""

    kind: ErrorKind
    detail: str
    code: str


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """What was read of one group: offsets, or the number of members (None if unknown)."""

    group: str
    requested_at: float
    found: GroupOffsets | int | GroupFailure | None


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """Follows the last answer: requests per Kafka API since the worker started."""

    requests: Mapping[str, int]
