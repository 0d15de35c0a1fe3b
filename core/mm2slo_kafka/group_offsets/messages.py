"""What the two processes tell each other, pickled over a socket pair that they alone hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_kafka.errors import ErrorKind
    from mm2slo_kafka.group_offsets.asking import GroupOffsets


@dataclass(frozen=True, slots=True)
class Cluster:
    """The first message: whom to ask. *properties* are librdkafka's."""

    alias: str
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """One reading; *timeout* in seconds bounds the whole of it."""

    groups: tuple[str, ...]
    max_in_flight: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A KafkaOperationError without what the other side knows."""

    kind: ErrorKind
    detail: str
    code: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Each group asked for, and the requests per Kafka API sent since the process started."""

    groups: Mapping[str, GroupOffsets | Failed]
    requests: Mapping[str, int]
