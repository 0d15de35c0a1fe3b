"""The log of a partition before it was truncated or re-created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.flow_offsets import Position, PositionQuality

if TYPE_CHECKING:
    from mm2slo_exporter.observation import NewestSync
    from mm2slo_exporter.state.partition_reading import PartitionReading


@dataclass(frozen=True, slots=True)
class ReplacedLog:
    """What was known of the old log.

    Its commit and sync say nothing about the new log, until one of them changes. Where
    MirrorMaker 2 continues depends on when it reads: a running consumer at the point of
    divergence, one that starts with an offset beyond the end at the log start, and one whose
    offset is below the end of the new log at that offset: it skips all records before it.
    """

    next_offset: int
    """The position; in a truncated log at most the lowest end since then."""
    committed: int | None
    sync: NewestSync | None
    target_end: int | None
    """The target's end at the position: no record of the new log is before it."""
    recreated: bool

    @property
    def has_evidence(self) -> bool:
        """Whether MirrorMaker 2 had replicated any record of the old log."""
        return self.committed is not None or self.sync is not None

    def without_old(self, reading: PartitionReading) -> PartitionReading:
        """The reading without commit and sync of the old log."""
        return reading._replace(
            committed=None if reading.committed == self.committed else reading.committed,
            sync=None if reading.sync == self.sync else reading.sync,
        )

    def position(self, end: int, log_start: int) -> Position:
        """The highest offset at which MirrorMaker 2 may continue in the new log."""
        if not self.recreated:
            return Position(min(self.next_offset, end), PositionQuality.BOUNDED)
        if self.next_offset > end:
            return Position(log_start, PositionQuality.SOURCE_RESET)
        return Position(self.next_offset, PositionQuality.BOUNDED)

    def skipped(self, next_offset: int, target_end: int) -> int:
        """How many records of the new log below *next_offset* were not copied; a lower bound.

        Copies of the old log's last records, made after its last reading, count as copies.
        """
        copies = self.copies(target_end)
        first = 0 if self.recreated else self.next_offset
        return 0 if copies is None else max(0, next_offset - first - copies)

    def copies(self, target_end: int) -> int | None:
        """The growth of the target since the last reading of the old log; None: it was reset."""
        if self.target_end is None or target_end < self.target_end:
            return None
        return target_end - self.target_end
