"""Messages between the worker process and its parent, pickled over a private socket pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_kafka.group_offsets.committed_offsets import GroupOffsets
    from mm2slo_kafka.kafka_errors import ErrorKind


@dataclass(frozen=True, slots=True)
class Cluster:
    """The first message: the cluster to read. *properties* are librdkafka's."""

    alias: str
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    """Reads the offsets of *groups*; *timeout* (seconds) bounds the whole request."""

    groups: tuple[str, ...]
    max_in_flight: int
    timeout: float


@dataclass(frozen=True, slots=True)
class GroupFailure:
    """A KafkaOperationError without the fields that the parent knows."""

    kind: ErrorKind
    detail: str
    code: str


@dataclass(frozen=True, slots=True)
class OffsetsResponse:
    """Results by group, and requests per Kafka API since the worker started."""

    groups: Mapping[str, GroupOffsets | GroupFailure]
    requests: Mapping[str, int]
