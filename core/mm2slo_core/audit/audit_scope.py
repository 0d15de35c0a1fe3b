"""What one run may judge: the window, and per partition what the snapshots allow.

Snapshots are taken in this order: position, then target end, then source end; so a record below
the position is on the target if it was ever copied, and no target record lacks its source record
for being too new.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mm2slo_core.audit.record_identity import Identity
    from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True)
class Window:
    """Records whose timestamp is in [start, end) are judged; epoch ms."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"a window of [{self.start}, {self.end}) ms holds nothing")

    def contains(self, timestamp: int) -> bool:
        """Whether a record of that *timestamp* is judged."""
        return self.start <= timestamp < self.end


class Cut(NamedTuple):
    """Where the copies of a partition part.

    Those of source records below *upstream* lie below *downstream* on the target, those of all
    others at or above it.
    """

    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A source partition: offsets [read_from, end) are read."""

    partition: int
    log_start: int
    """At the end of the scan: retention may have moved it meanwhile."""
    read_from: int
    end: int
    """High watermark, or last stable offset for a flow that reads committed."""
    next_offset: int | None
    """max(committed, newest synced upstream) + 1, never interpolated. None: not known; nothing
    that is missing is called lost then."""
    known_from: int = 0
    """Upstream offset of the oldest surviving sync of this epoch; missing records below it are
    unauditable: whether the flow ever started there is not known."""
    expired: int = 0
    """Records of this window that left the source before they were copied."""
    cuts: tuple[Cut, ...] = ()
    """Ascending; known where records have no timestamp in common, see `UnitScope.bucketed`."""


@dataclass(frozen=True, slots=True)
class TargetPartition:
    """A target partition: offsets [read_from, end) are read."""

    partition: int
    log_start: int
    read_from: int
    end: int
    auditable_from: int = 0
    """Below it the source's copy may be gone, or be of an earlier epoch: what has no counterpart
    there is unauditable, not extra."""


class Comparison(StrEnum):
    """How the two sides are compared."""

    RECORDS = "records"
    """Every record, in its own partition."""
    KEYS = "keys"
    """Every record, whatever its partition: partition counts differ, so affinity is judged per key.
    """
    LATEST = "latest"
    """The newest value of each key: compacted topics thin out independently."""


class TimestampType(StrEnum):
    """`message.timestamp.type` of a topic."""

    CREATE = "CreateTime"
    LOG_APPEND = "LogAppendTime"


@dataclass(frozen=True, slots=True)
class FlowScope:
    """One flow's source topic of a unit."""

    flow: Flow
    source_topic: str
    partitions: tuple[SourcePartition, ...]
    source_time: TimestampType = TimestampType.CREATE
    has_positions: bool = True
    """False for flows without MirrorMaker 2: what is due follows from age alone."""


@dataclass(frozen=True, slots=True)
class UnitScope:
    """The unit of audit: one target topic with all flows that feed it."""

    index: int
    target_topic: str
    flows: tuple[FlowScope, ...]
    partitions: tuple[TargetPartition, ...]
    window: Window
    identity: Identity
    comparison: Comparison = Comparison.RECORDS
    target_time: TimestampType = TimestampType.CREATE
    taken_at: int = 0
    """When the source end was read, epoch ms: the present that ages are measured to."""
    max_pending: int = 300_000
    """StateTimeouts in ms: what is older, and beyond the position, is overdue."""
    tombstones_kept: int = 0
    """For LATEST: how long the target keeps tombstones at least, in ms. One that it lacks although
    it is younger was not copied; an older one may have been, and cleaned. 0: not known."""

    @property
    def planned(self) -> int:
        """Offsets that will be read on both sides: the records at most."""
        sources = sum(each.end - each.read_from for flow in self.flows for each in flow.partitions)
        return sources + sum(each.end - each.read_from for each in self.partitions)

    @property
    def bucketed(self) -> bool:
        """Whether cuts, in place of timestamps, tell equal records of one partition apart."""
        return (
            self.comparison is Comparison.RECORDS
            and not self.identity.timestamp
            and len(self.flows) == 1
            and any(each.cuts for each in self.flows[0].partitions)
        )


class NotAuditedReason(StrEnum):
    """Why a topic has no verdict; a closed list."""

    TARGET_MISSING = "target_missing"
    SOURCE_MISSING = "source_missing"
    EXPIRED = "expired"
    """Nothing of the window is left on the source."""
    EMPTY = "empty"
    """No record of the window on either side."""
    AUTHORIZATION = "authorization"
    UNREACHABLE = "unreachable"
    LEASED = "leased"
    """Another run holds the topic's lease."""
    FAILED = "failed"
    """Reading or judging failed; the detail says how."""


@dataclass(frozen=True, slots=True)
class NotAudited:
    """A topic that has no verdict in this run. It fails no run."""

    target_topic: str
    reason: NotAuditedReason
    detail: str
    flows: tuple[Flow, ...] = ()
    """Those that feed it, as far as they are known."""
