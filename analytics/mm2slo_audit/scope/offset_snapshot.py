"""Offsets of both sides, taken in the order that makes a missing record mean something."""

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
    """As MirrorMaker 2 reads: what it does not see is not missing."""
    if flow.exactly_once or flow.isolation is FlowIsolation.READ_COMMITTED:
        return COMMITTED
    return UNCOMMITTED


def target_isolation(unit: Unit) -> Isolation:
    """Copies of exactly-once flows count once they are committed."""
    exactly_once = any(feed.flow.exactly_once for feed in unit.feeds)
    return COMMITTED if exactly_once else UNCOMMITTED


@dataclass(slots=True)
class OffsetReadings:
    """Figures per partition of one cluster; a partition is in `errors` when one failed."""

    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    at: dict[TopicPartition, int] = field(default_factory=dict)
    """The first offset of the window's time."""
    errors: dict[TopicPartition, ErrorKind] = field(default_factory=dict)
    requested_at: float = 0.0
    """When the ends were asked for, epoch s."""

    def take_ends(self, reading: OffsetReading) -> None:
        """Add end offsets."""
        self.ends |= reading.offsets
        self.errors |= reading.errors
        self.requested_at = reading.requested_at

    def take_starts(self, reading: OffsetReading) -> None:
        """Add log starts."""
        self.starts |= reading.offsets
        self.errors |= reading.errors

    def take_at(self, reading: OffsetReading) -> None:
        """Add offsets by time."""
        self.at |= reading.offsets
        self.errors |= reading.errors


def partitions_of(topics: Iterable[str], counts: Mapping[str, int]) -> Sequence[TopicPartition]:
    """Every partition of those topics that exist."""
    return [
        TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))
    ]
