"""Offset snapshots of both sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.config.flow_config import Isolation as FlowIsolation
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_audit.scope.audit_units import Unit
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_kafka.kafka_errors import ErrorKind
    from mm2slo_kafka.partition_offsets import Isolation, OffsetReading

COMMITTED: Isolation = "read_committed"
UNCOMMITTED: Isolation = "read_uncommitted"


def source_isolation(flow: FlowConfig) -> Isolation:
    """The isolation level of MirrorMaker 2: records that it does not read are not missing."""
    if flow.exactly_once or flow.isolation is FlowIsolation.READ_COMMITTED:
        return COMMITTED
    return UNCOMMITTED


def target_isolation(unit: Unit) -> Isolation:
    """read_committed for exactly-once flows: their copies count once committed."""
    exactly_once = any(feed.flow.exactly_once for feed in unit.feeds)
    return COMMITTED if exactly_once else UNCOMMITTED


@dataclass(slots=True)
class OffsetReadings:
    """Offsets per partition of one cluster; `errors` has partitions that failed."""

    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    at: dict[TopicPartition, int] = field(default_factory=dict)
    """The first offset at or after the window's start."""
    errors: dict[TopicPartition, ErrorKind] = field(default_factory=dict)
    requested_at: float = 0.0
    """Request time of the end offsets, epoch s."""

    def add_ends(self, reading: OffsetReading) -> None:
        self.ends |= reading.offsets
        self.errors |= reading.errors
        self.requested_at = reading.requested_at

    def add_starts(self, reading: OffsetReading) -> None:
        self.starts |= reading.offsets
        self.errors |= reading.errors

    def add_window_starts(self, reading: OffsetReading) -> None:
        self.at |= reading.offsets
        self.errors |= reading.errors


def partitions_of(topics: Iterable[str], counts: Mapping[str, int]) -> Sequence[TopicPartition]:
    """All partitions of the *topics* that exist."""
    return [
        TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))
    ]
