"""Certain loss: records that retention removed before they were replicated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class SavedLoss:
    """The state of a partition's loss counter that must survive a restart."""

    total: int
    judged_to: int
    """All lower offsets are replicated or counted as lost."""


class CertainLoss:
    """Counts the records of one partition that retention removed before they were replicated.

    A gap (log start beyond the position) counts when a second sample confirms it, at least one
    position period later: one committed position may be a minute old. It is confirmed if
    (a) the position is still below the log start of the first sample, or
    (b) the position has jumped over it (MM2 resumed at the log start) while the target grew by
        fewer records than the position advanced; both positions must be live.
    A running or resuming MM2 is often at its new position before the log start is read. So offsets
    that a live position passed without copies count as well if the next reading of the log start
    shows that they were removed. Most of the removed ones must be without a copy: in topics with
    transactions that are purged at once, some are without a record.

    Invariants, where each offset is a record:
    A. The total never decreases.
    B. It never exceeds the true loss: what one sample cannot prove does not count yet.
    C. Each offset is judged once: all below `judged_to` are replicated or counted as lost.
    D. The loss of a flow that is stopped is complete after two samples.
    Compacted offsets and transaction markers count as well: an upper bound in such topics.
    """

    __slots__ = ("_judged_to", "_live_end", "_log_start", "_sampled_at", "_skips", "_total")

    def __init__(
        self, judged_to: int = 0, sampled_at: float | None = None, live_end: int | None = None
    ) -> None:
        """Continues after samples in which no record may have been lost.

        The last one was taken at *sampled_at*; *live_end* is its target end if it was live.
        """
        self._total = 0
        self._judged_to = judged_to
        self._sampled_at = sampled_at
        self._log_start = 0
        self._live_end = live_end
        self._skips: tuple[_Skip, ...] = ()

    @property
    def total(self) -> int:
        return self._total

    @property
    def saved(self) -> SavedLoss:
        return SavedLoss(self._total, self._judged_to)

    def observe(
        self,
        at: float,
        next_offset: int,
        log_start: int,
        *,
        position_period: float = 0.0,
        target_end: int | None = None,
        log_start_read: bool = False,
    ) -> int:
        """Add the sample of time *at* and return the number of newly confirmed lost records.

        *position_period*: longest time between updates of a healthy position; 0 for a live one,
        MM2's flush interval if only committed offsets are known. *target_end* is the end offset of
        the target partition at this position. *log_start_read*: whether *log_start* was read
        after the position, not in an earlier round.
        """
        before_at = self._sampled_at
        if before_at is not None and at - before_at < position_period:
            return 0
        live_end = None if position_period else target_end
        lost = 0
        if before_at is not None:
            copies = _growth(self._live_end, live_end)
            lost = self._confirmed(next_offset, copies)
            if lost:
                self._judged_to = max(self._judged_to, self._log_start)  # C
            elif copies:  # else no copy shows where MM2 is: it passed offsets without records
                self._note_skip(next_offset, copies)
        self._sampled_at, self._log_start, self._live_end = at, log_start, live_end
        if log_start_read:
            lost += self._removed(log_start)
            self._skips = ()
        self._total += lost
        # C: records below the position are replicated or counted; a position that goes back later
        # (MM2 resumes from an older commit after a crash) must not turn them into loss.
        self._judged_to = max(self._judged_to, next_offset)
        return lost

    def continue_from(self, saved: SavedLoss) -> None:
        """Take over what another process has counted of the same log."""
        self._total = max(self._total, saved.total)
        self._judged_to = max(self._judged_to, saved.judged_to)

    def add_skipped(self, records: int, next_offset: int) -> None:
        """Count records that MirrorMaker 2 skipped below *next_offset* of a re-created log."""
        self._total += records
        self._judged_to = next_offset

    def source_recreated(self) -> None:
        """Restart after a re-creation or truncation, which counts no loss."""
        self._sampled_at = None
        self._judged_to = 0
        self._skips = ()

    def _note_skip(self, next_offset: int, copies: int) -> None:
        first = self._judged_to
        if next_offset > first + copies:
            skip = _Skip(first, next_offset, next_offset - first - copies)
            self._skips = (*self._skips, skip)

    def _removed(self, log_start: int) -> int:
        """How many of the offsets without copies were removed."""
        lost = 0
        for skip in self._skips:
            removed = min(log_start, skip.until) - skip.first
            if 0 < removed < 2 * skip.records:
                lost += min(skip.records, removed)
        return lost

    def _confirmed(self, next_offset: int, copies: int | None) -> int:
        # B: the log start of the first sample. What retention removed since then, the position may
        # have passed before.
        first = self._judged_to
        gap = self._log_start - first
        if gap <= 0:
            return 0
        if next_offset < self._log_start:
            return self._log_start - max(first, next_offset)
        return 0 if copies is None else min(max(next_offset - first - copies, 0), gap)


class _Skip(NamedTuple):
    """A live position passed [first, until) with *records* fewer copies."""

    first: int
    until: int
    records: int


def _growth(before: int | None, now: int | None) -> int | None:
    """The growth of the target; None without live positions, or if the target was re-created."""
    return None if before is None or now is None or now < before else now - before
