"""Tracks the replicated position of one source partition.

What was known of a log before it was truncated or re-created says nothing about the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mm2slo_core.offset_translation import Position, PositionQuality, estimate_position
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.state.partition_reading import FlowRules, PartitionReading

NOTHING_REPLICATED = frozenset({PositionQuality.NOT_STARTED, PositionQuality.SOURCE_RESET})
"""The position is then the log start, which retention advances, not replication."""
_STALE = PositionQuality.STALE  # an access takes as long as a call until Python 3.12
UNSETTLED = NOTHING_REPLICATED | {PositionQuality.BOUNDED}
"""No copy of the log is known: the position may change without replication."""


@dataclass(slots=True, eq=False)
class PositionTracker:
    """The position over rounds; it skips offsets without records and removed ones."""

    advance: int = 0
    """Offsets that replication passed since the preceding round."""
    skipped: int | None = 0
    """Records at the start of a replaced log that were skipped; None until a copy shows it."""
    is_settled: bool = True
    """Whether the records at the start of a replaced log were judged."""
    _estimate: Position | None = None
    # Of the reading that it is from; the whole reading would take more memory.
    _committed: int | None = None
    _sync: NewestSync | None = None
    _target_end: int | None = None
    _copy_end: int | None = None
    """The newest known end of the copy."""
    _sync_of_old_copy: NewestSync | None = None
    _removed_below: int = 0
    _old: ReplacedLog | None = None
    _previous: ReplacedLog | None = None
    _confirmed: ReplacedLog | None = None
    _replaced_at_target: int | None = None

    @property
    def passed_from(self) -> int:
        """Where `advance` starts: the position of the preceding round."""
        return 0 if self._estimate is None else self._estimate.next_offset - self.advance

    def observe(
        self, reading: PartitionReading, end: int | None, rules: FlowRules
    ) -> Position | None:
        """The position of a round; the last one while the source is not read."""
        self.advance = 0
        log_start = reading.source_start
        if end is not None and log_start is not None:
            sync, target_end, before = reading.sync, reading.target_end, self._estimate
            if target_end is not None:
                if sync is not None and target_end < (self._copy_end or 0):
                    # The copy was truncated or re-created; its sync is of the old one.
                    is_old = sync == self._sync or sync.downstream > target_end
                    self._sync_of_old_copy = sync if is_old else None
                self._copy_end = target_end
            self._committed, self._sync, self._target_end = reading.committed, sync, target_end
            if self._sync_of_old_copy is not None:
                reading = self._without_old_copy(reading)
            if self._old is None:
                position = _estimate(reading, end, log_start, rules, before)
            else:
                position = self._estimate_in_new_log(self._old, reading, end, log_start, rules)
            self._estimate = position
            if before is not None and position.quality not in UNSETTLED:
                self.advance = max(0, position.next_offset - before.next_offset)
            if self._old is not None:
                self._observe_skipped(self._old, position, target_end)
        estimate = self._estimate
        if estimate is None:
            return None
        if reading.probe is None and not self._removed_below:
            return estimate
        next_offset = max(estimate.next_offset, self._removed_below)
        return estimate.moved_to(reading.skip_empty_offsets(next_offset))

    def skip_removed(self, log_start: int) -> None:
        """Continue at *log_start*: MirrorMaker 2 has resumed, and can only do so there."""
        self._removed_below = log_start

    def confirm_log(self) -> None:
        """Note that the topic's id was read again, and is the same.

        That read may be older than the last round, but not older than the preceding call.
        """
        before, known = self._previous, self._known_log(recreated=True)
        # The same object where nothing has changed: most topics rest.
        self._confirmed, self._previous = before, before if known == before else known

    def for_new_topic(self) -> PositionTracker:
        """A tracker of the log of a re-created topic."""
        new = PositionTracker()
        new._replace(self._confirmed or self._previous)
        return new

    def source_truncated(self, end: int) -> None:
        """Continue with a log that ends at *end*, before the end of the last round."""
        self._removed_below = 0
        known = self._known_log(recreated=False)
        self._replace(known or ReplacedLog(end, None, None, None, recreated=False))

    def truncated_before(self, end: int) -> bool:
        """Continue with a log that was truncated to *end* before the first round.

        False if MirrorMaker 2's offsets are in the log, and thus of it.
        """
        if self._estimate is not None and self._estimate.quality in NOTHING_REPLICATED:
            self._estimate = None
        if self._estimate is not None:
            return False
        self.source_truncated(end)
        return True

    def _without_old_copy(self, reading: PartitionReading) -> PartitionReading:
        """The reading with an end of the copy that does not reach the sync of the old one."""
        sync, end = reading.sync, reading.target_end
        if sync is None or end is None or sync != self._sync_of_old_copy:
            return reading
        return reading._replace(target_end=min(end, sync.downstream))

    def _replace(self, old: ReplacedLog | None) -> None:
        self._old = old
        self._estimate = None  # of the old log
        self._replaced_at_target = None
        self.skipped = 0 if old is None else None
        self.is_settled = old is None

    def _known_log(self, *, recreated: bool) -> ReplacedLog | None:
        if self._old is not None and self.skipped is None:
            return replace(self._old, recreated=recreated)
        position = self._estimate
        if position is None or position.quality in NOTHING_REPLICATED:
            return None
        return ReplacedLog(
            position.next_offset,
            self._committed,
            self._sync,
            self._target_end,
            recreated=recreated,
        )

    def _estimate_in_new_log(
        self,
        old: ReplacedLog,
        reading: PartitionReading,
        end: int,
        log_start: int,
        rules: FlowRules,
    ) -> Position:
        known = old.without_old(reading)
        if self.is_settled and known == reading:
            self._old = None  # from now on, the log is one like any other
            return _estimate(reading, end, log_start, rules, self._estimate)
        position = _estimate(known, end, log_start, rules, None)
        if position.quality is PositionQuality.SOURCE_RESET:
            # Written late: beyond the end of the new log, so about the old one.
            old = replace(old, committed=reading.committed, sync=reading.sync)
        elif position.quality is not PositionQuality.NOT_STARTED or not old.has_evidence:
            return position
        position = old.position(end, log_start)
        if not old.recreated:
            old = replace(old, next_offset=position.next_offset)
        self._old = old
        return position

    def _observe_skipped(
        self, old: ReplacedLog, position: Position, target_end: int | None
    ) -> None:
        if target_end is None:
            return
        if self._replaced_at_target is None:
            self._replaced_at_target = target_end
        if position.quality in UNSETTLED:
            return
        copies = old.copies(target_end)
        if self.skipped is None and copies is not None:
            # The position may have passed records without copies.
            self.advance = min(self.advance, copies)
        if target_end != self._replaced_at_target:
            self.skipped = old.skipped(position.next_offset, target_end)


def _estimate(
    reading: PartitionReading,
    end: int,
    log_start: int,
    rules: FlowRules,
    before: Position | None,
) -> Position:
    position = estimate_position(
        committed=reading.committed,
        sync=reading.sync,
        target_end=reading.target_end,
        high_watermark=end,
        log_start=log_start,
        shared_target=rules.shared_target,
        exactly_once=rules.exactly_once,
        copy_known=rules.copy_known,
    )
    if (
        before is not None
        and position.quality is _STALE
        and position.next_offset < before.next_offset <= end
    ):
        # The position does not go back while the target is unreadable.
        return position.moved_to(before.next_offset)
    return position


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
