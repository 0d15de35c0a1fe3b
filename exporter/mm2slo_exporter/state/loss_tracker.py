"""Tracks the records of one partition that were removed before they were replicated.

Only losses in the state topic are published: without a record there, a restarted process would
count them a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.certain_loss import CertainLoss, SavedLoss

if TYPE_CHECKING:
    from mm2slo_exporter.state.partition_reading import PartitionReading


_NOTHING_SAVED = SavedLoss(0, 0)


class LossTracker:
    """Certain loss over rounds, and whether MirrorMaker 2 has resumed after it."""

    __slots__ = (
        "_ahead",
        "_emptied_at",
        "_inherited",
        "_log_replaced",
        "_loss",
        "_passed",
        "_skipped",
        "saved",
    )

    def __init__(self) -> None:
        self._loss = CertainLoss()
        self._ahead = 0
        """Lost offsets that the position has not passed yet."""
        self._passed = 0
        """Those that it has passed in this round."""
        self._inherited = 0
        """Those that another process has counted, which may be ahead of the position."""
        self._emptied_at: float | None = None
        self._log_replaced = False
        self._skipped: tuple[float, int] | None = None
        self.saved = _NOTHING_SAVED
        """What the state topic holds."""

    @property
    def is_known(self) -> bool:
        """Whether this or another process has counted a loss."""
        return self._loss.total > 0 or self.saved.total > 0

    @property
    def pending(self) -> int:
        """Lost records that no state record contains yet."""
        return max(0, self._loss.total - self.saved.total)

    @property
    def needs_saving(self) -> bool:
        """Whether the state record is behind, or refers to an earlier log."""
        counted = self._loss
        return counted.total > 0 and (
            counted.total > self.saved.total or counted.saved.judged_to < self.saved.judged_to
        )

    @property
    def counted(self) -> SavedLoss:
        """The state to save."""
        return self._loss.saved

    @property
    def awaits_confirmation(self) -> bool:
        """Whether skipped records count as lost if no later round contradicts it."""
        return self._skipped is not None

    def read_saved(self, saved: SavedLoss, *, same_log: bool) -> None:
        """Publish what the state topic holds; continue from it if another process counted more."""
        if saved.total > self._loss.total:
            if same_log:
                self._inherited += saved.total - self._loss.total
            self._loss.continue_from(saved if same_log else SavedLoss(saved.total, 0))
        self.saved = SavedLoss(max(self.saved.total, saved.total), saved.judged_to)

    def source_replaced(self) -> None:
        """Restart after a re-creation or truncation of the source."""
        self._loss.source_recreated()
        self._ahead = self._inherited = 0
        self._emptied_at = None
        self._log_replaced = True
        self._skipped = None

    def observe_skipped(
        self, at: float, skipped: int | None, next_offset: int, wait: float
    ) -> None:
        """Count records that MirrorMaker 2 skipped at the start of a replaced log.

        *skipped* is None until a commit or sync shows it. It counts if it is still so *wait*
        seconds later: the first evidence may be a late commit or sync of the old log.
        """
        if not self._log_replaced or skipped is None:
            return
        if skipped:
            if self._skipped is None:
                self._skipped = at, skipped
            since, least = self._skipped
            if at - since < wait:
                return
            self._loss.add_skipped(min(skipped, least), next_offset)
        self._skipped = None
        self._log_replaced = False

    def observe(
        self,
        at: float,
        reading: PartitionReading,
        next_offset: int,
        position_period: float,
        passed_from: int,
    ) -> None:
        """Count the loss that this round confirms; none until a replaced log is settled.

        *passed_from*: the position of the round before.
        """
        if reading.source_start is not None and reading.target_readable:
            if self._inherited:
                # What is removed and not passed yet will be passed without copies.
                removed = min(self._loss.saved.judged_to, reading.source_start) - passed_from
                self._ahead += min(max(removed - self._ahead, 0), self._inherited)
                self._inherited = 0
            self._observe(
                at,
                next_offset,
                reading.source_start,
                reading.target_end,
                position_period,
                log_start_read=reading.source_start_read,
            )

    def repeat(
        self,
        at: float,
        next_offset: int,
        log_start: int,
        target_end: int | None,
        position_period: float,
    ) -> bool:
        """Add a round that read what the last one did; True if it confirms a loss."""
        return self._observe(at, next_offset, log_start, target_end, position_period) > 0

    def _observe(
        self,
        at: float,
        next_offset: int,
        log_start: int,
        target_end: int | None,
        position_period: float,
        *,
        log_start_read: bool = False,
    ) -> int:
        if self._log_replaced:
            return 0
        lost = self._loss.observe(
            at,
            next_offset,
            log_start,
            position_period=position_period,
            target_end=target_end,
            log_start_read=log_start_read,
        )
        if next_offset < log_start:
            self._ahead += lost
        else:
            self._passed = lost
        return lost

    def replicated(self, passed: int) -> int:
        """How many of the *passed* offsets were replicated, not lost."""
        if not self._ahead and not self._passed:
            return passed
        lost = min(passed, self._ahead)
        self._ahead -= lost
        replicated = max(0, passed - lost - self._passed)
        self._passed = 0
        return replicated

    def has_resumed(
        self, at: float, reading: PartitionReading, next_offset: int, lag_records: int | None
    ) -> bool:
        """Whether the flow replicates again after all unreplicated records were removed.

        MirrorMaker 2 then continues at the log start, but writes nothing until a record arrives:
        copies of other partitions since then are the evidence.
        """
        log_start = reading.source_start
        if log_start is None or next_offset >= log_start or lag_records != 0:
            self._emptied_at = None
            return False
        if self._emptied_at is None:
            self._emptied_at = at
        return (
            self._loss.saved.judged_to >= log_start
            and reading.flow_replicated_at is not None
            and reading.flow_replicated_at > self._emptied_at
        )
