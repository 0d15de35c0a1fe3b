"""The scope of an audit run: the window, and the offsets to read and judge per partition.

Offsets are read in this order: position, then target end, then source end. So a record below the
position is on the target if it was replicated, and no target record is newer than the source end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True)
class Window(Span):
    """Records with a timestamp in [start, end) are judged; epoch ms."""

    def contains(self, timestamp: int) -> bool:
        return self.start <= timestamp < self.end


class Cut(NamedTuple):
    """A pair of offsets that divides the copies of a partition.

    Copies of source records below *upstream* are below *downstream* on the target, all others at or
    above it.
    """

    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A source partition: offsets [read_from, end) are read."""

    partition: int
    log_start: int
    """Read after the scan: retention may advance it during the scan."""
    read_from: int
    end: int
    """High watermark, or last stable offset for a `read_committed` flow."""
    next_offset: int | None
    """Committed source offset + 1: all records below it were copied or skipped. None: not known;
    missing records are then never lost."""
    known_from: int = 0
    """Missing records below it are unauditable: the target may have removed their copies, or
    neither a commit nor a sync shows that the flow had started."""
    expired: int = 0
    """Records of this window that retention removed before replication."""
    cuts: tuple[Cut, ...] = ()
    """Ascending; only if records have no common timestamp, see `UnitScope.bucketed`."""


@dataclass(frozen=True, slots=True)
class TargetPartition:
    """A target partition: offsets [read_from, end) are read."""

    partition: int
    log_start: int
    read_from: int
    end: int
    auditable_from: int = 0
    """Below it the source record may be removed, or of an earlier epoch: target records without a
    counterpart are unauditable there, not extra."""


class Comparison(StrEnum):
    RECORDS = "records"
    """All records, per partition."""
    KEYS = "keys"
    """All records in any partition: partition counts differ, so affinity is judged per key."""
    LATEST = "latest"
    """The newest record of each key: compaction runs independently on both sides."""


class TimestampType(StrEnum):
    """`message.timestamp.type` of the records of a topic."""

    # MirrorMaker 2 does not sync the setting (`DefaultConfigPropertyFilter` excludes it), so both
    # sides may differ. A copy has the timestamp of its original unless the target sets its own.
    CREATE = "CreateTime"
    LOG_APPEND = "LogAppendTime"
    MIXED = "mixed"
    """Not a setting: it was changed, and records keep the type that they were written with."""


@dataclass(frozen=True, slots=True)
class FlowScope:
    """The source topic of one flow in a unit."""

    flow: Flow
    source_topic: str
    partitions: tuple[SourcePartition, ...]
    source_time: TimestampType = TimestampType.CREATE
    has_positions: bool = True
    """False for flows without MirrorMaker 2: records are overdue by age alone."""


@dataclass(frozen=True, slots=True)
class UnitScope:
    """The unit of audit: one target topic with all flows that replicate to it."""

    index: int
    target_topic: str
    flows: tuple[FlowScope, ...]
    partitions: tuple[TargetPartition, ...]
    window: Window
    identity: Identity
    comparison: Comparison = Comparison.RECORDS
    target_time: TimestampType = TimestampType.CREATE
    taken_at: int = 0
    """When the source end was read, epoch ms; ages are relative to it."""
    max_pending: int = 300_000
    """Ms after which a record beyond the position is overdue."""
    tombstones_kept: int = 0
    """For LATEST: the least time in ms that the target keeps tombstones. A missing younger one was
    not replicated; a missing older one may have been cleaned. 0: not known."""
    earlier: tuple[UnitScope, ...] = ()
    """What earlier runs with lost or overdue records have read: their copies are late now."""

    @property
    def planned(self) -> int:
        """Number of offsets to read on both sides, an upper bound of the records."""
        # Transaction markers and compacted records take offsets, too.
        sources = sum(each.end - each.read_from for flow in self.flows for each in flow.partitions)
        return sources + sum(each.end - each.read_from for each in self.partitions)

    @property
    def bucketed(self) -> bool:
        """Whether cuts instead of timestamps distinguish equal records of one partition."""
        # Offset syncs divide the copies of one flow. In a topic that several flows write, the
        # records of the others are on both sides of any cut.
        return (
            self.comparison is Comparison.RECORDS
            and not self.identity.timestamp
            and len(self.flows) == 1
            and any(each.cuts for each in self.flows[0].partitions)
        )


class NotAuditedReason(StrEnum):
    """Why a topic was not audited; a closed list."""

    TARGET_MISSING = "target_missing"
    SOURCE_MISSING = "source_missing"
    COPY_UNKNOWN = "copy_unknown"
    """Transforms of the connector rename the copy in a way that is not known."""
    EXPIRED = "expired"
    """Retention removed all records of the window from the source."""
    EMPTY = "empty"
    """No record of the window on either side."""
    AUTHORIZATION = "authorization"
    UNREACHABLE = "unreachable"
    LEASED = "leased"
    """Another run holds the topic's lease."""
    FAILED = "failed"
    """The audit of the topic failed; the detail has the error."""


@dataclass(frozen=True, slots=True)
class NotAudited:
    """A topic that was not audited in this run; it does not fail the run."""

    target_topic: str
    reason: NotAuditedReason
    detail: str
    flows: tuple[Flow, ...] = ()
    """The known flows that replicate to it."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One sampled record of either side.

    Columns of the engine, in this order: topic int, flow int, side byte (0 source,
    1 target), partition int, offset long, ts long (epoch ms), fp long, kh long or null, size int
    (bytes of key and value), in_records boolean, in_keys boolean, tombstone boolean, masked
    array of long.
    """

    topic: int
    """Index of the unit in the audit run."""
    flow: int
    """Index of the flow within the unit; 0 for target records, whose flow is not known."""
    side: Side
    partition: int
    offset: int
    timestamp: int
    """Epoch ms."""
    fingerprint: int
    """64 bits, signed, of the parts that `Identity` covers."""
    key_hash: int | None
    """64 bits, signed; None: the record has no key."""
    size: int
    """Bytes of key and value."""
    in_records: bool = True
    """In the record stratum of the sample."""
    in_keys: bool = True
    """In the key stratum of the sample; False for records without a key unless it is a census."""
    tombstone: bool = False
    """The value is null: on a compacted topic the key may be deleted on either side."""
    masked: tuple[int, ...] = ()
    """Hashes of the contents of the parts in `Identity.must_change`, each with its part: distinct,
    of each header of a name, and without null, empty or absent ones."""


@dataclass(frozen=True, slots=True)
class ArrivalPoll:
    """One poll of the watermark timeline for one partition: offsets below *end* had arrived.

    A record arrived within [earliest, latest] of the first poll whose end is beyond it.
    Columns of the engine: topic int, flow int, side byte, partition int, end long, earliest long,
    latest long (epoch ms; earliest null: no previous poll).
    """

    topic: int
    flow: int
    side: Side
    partition: int
    end: int
    earliest: int | None
    latest: int
