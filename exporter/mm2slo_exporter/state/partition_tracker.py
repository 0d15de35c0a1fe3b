"""Tracks one source partition over time: position, lag, progress, headroom, loss.

Values that compare both clusters are reported while the source is readable. While the target is
not, the newest known position is used, with the quality `stale`. Only losses in the state topic
are published: without a record there, a restarted process would count them a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mm2slo_core.indicators.certain_loss import CertainLoss, SavedLoss
from mm2slo_core.indicators.flow_state import DroppedTail, PartitionProgress, StallWatch
from mm2slo_core.indicators.replication_lag import (
    NO_LAG,
    NO_TIME_LAG,
    PENDING_TIME_LAG,
    UNKNOWN_TIME_LAG,
    ArrivalHistory,
    LagOrigin,
    RecordLag,
    RetentionPolicy,
    SmoothedRate,
    TimeLag,
    headroom,
    record_lag,
    time_lag,
)
from mm2slo_core.offset_translation import Position, PositionQuality
from mm2slo_core.records.timeline_record import PollTimes
from mm2slo_exporter.state.flow_report import PartitionState
from mm2slo_exporter.state.partition_reading import FlowRules, PartitionReading
from mm2slo_exporter.state.position_tracker import UNSETTLED, PositionTracker

_HEADROOM_RATE_HALF_LIFE = 300.0
_IDLE = PartitionProgress.IDLE  # an access takes as long as a call until Python 3.12
_PENDING = frozenset({LagOrigin.RECORD, LagOrigin.ABSENT})


@dataclass(slots=True, eq=False)
class PartitionTracker:
    """State of one partition across rounds."""

    partition: int
    source_total: int = 0
    replicated_total: int = 0
    truncations: int = 0
    found_loss: LossTracker | None = None
    """None while no record can have been lost, as in nearly all partitions."""
    # What `CertainLoss` would continue from.
    _judged_to: int = 0
    _sampled_at: float | None = None
    _live_end: int | None = None
    _position: PositionTracker = field(default_factory=PositionTracker)
    _history: ArrivalHistory = field(default_factory=ArrivalHistory)
    _stall: StallWatch = field(default_factory=StallWatch)
    _tail: DroppedTail | None = None
    _rate: SmoothedRate | None = None
    _log: int = 0
    _last_end: int | None = None
    _polled_at: float | None = None

    @property
    def loss(self) -> LossTracker:
        """The tracker of its loss, created on first use."""
        if self.found_loss is None:
            certain = CertainLoss(self._judged_to, self._sampled_at, self._live_end)
            self.found_loss = LossTracker(certain)
        return self.found_loss

    def add_past_poll(self, end: int, times: PollTimes) -> None:
        """Add a poll of an earlier process to the arrival history; polls come newest first."""
        if not self._history.extend_back(end, times):
            first = self._history.first_offset
            if first is not None and self._position.truncated_before(first):
                self._stall = StallWatch()

    def lacks_arrival(self, offset: int) -> bool:
        """Whether an older poll may add the arrival of *offset*."""
        return self._history.lacks(offset)

    def confirm_log(self) -> None:
        """Note that the topic's id was read again, and is the same."""
        self._position.confirm_log()

    def source_recreated(self) -> None:
        """Reset the state: the topic's offsets now refer to other records."""
        self._log += 1
        self._history = ArrivalHistory()
        self._stall = StallWatch()
        self._tail = None
        self.loss.source_replaced()
        self._position = self._position.for_new_topic()
        self._last_end = None
        self._polled_at = None
        self._rate = None

    def observe_source_end(self, end: int, requested_at: float, answered_at: float) -> None:
        """Process the source's high watermark of a round in which the source was read."""
        if requested_at == self._polled_at:
            return
        if self._last_end is not None:
            if end < self._last_end:
                self.truncations += 1
                self._log += 1
                self._position.source_truncated(end)
                self.loss.source_replaced()
                self._rate = None
            else:
                self.source_total += end - self._last_end
        self._last_end = end
        self._history.add(self._polled_at, answered_at, end)
        self._polled_at = requested_at
        if self._rate is not None:
            self._rate.add(answered_at, end)

    def judge(
        self,
        at: float,
        reading: PartitionReading,
        rules: FlowRules,
        policy: RetentionPolicy | None,
    ) -> PartitionState:
        """Turn one round's reading into the published state."""
        source_end, log_start, stable_end, target_end, target_start, _, sync, probe, *_ = reading
        end = stable_end if rules.reads_committed else source_end
        if not rules.has_positions:
            if end is not None:
                self._history.forget_below(end)
            return self._unknown(reading)
        if end is not None and (log_start is None or end < log_start):
            return self._unknown(reading)  # of two logs
        if probe is not None:
            reading = reading.of_log(self._log)
        position = self._position.observe(reading, end, rules)
        if end is None or log_start is None or position is None:
            return self._unknown(reading)
        next_offset, quality = position
        # Records below the log start were removed, and do not move the position.
        oldest = max(next_offset, log_start)
        first = oldest if probe is None else reading.skip_empty_offsets(oldest)
        lag = record_lag(end, next_offset, first)
        is_tracked = next_offset < log_start or self.found_loss is not None
        if is_tracked and self.loss.has_resumed(at, reading, next_offset, lag.records):
            self._position.skip_removed(oldest)
            next_offset, lag = first, NO_LAG
        is_dropped = is_undecided = False
        if reading.task_commits is not None or self._tail is not None:
            is_dropped, is_undecided = self._watch_tail(at, position, lag, reading, rules)
        if is_dropped:
            next_offset, quality, lag = end, PositionQuality.FILTERED, NO_LAG
        # Not from the log start: records removed by retention must not reduce the lag in seconds.
        restart_position = min(next_offset, reading.restart_position(next_offset))
        self._history.forget_below(restart_position, coarse_below=next_offset)
        age, record_timestamp = NO_TIME_LAG, None
        if lag is not NO_LAG:
            record_timestamp = None if probe is None else reading.record_timestamp(oldest)
            age = (
                UNKNOWN_TIME_LAG
                if is_undecided
                else self._age(at, lag, next_offset, record_timestamp, rules)
            )
        period = rules.position_period(quality)
        progress = self._stall.observe(
            at,
            lag.records if reading.target_readable else None,
            0 if quality in UNSETTLED else next_offset,
            rules.stall_after,
            period,
        )
        if is_undecided and progress is PartitionProgress.STALLED:
            progress = PartitionProgress.MOVING
        advance = self._position.advance
        if self.found_loss is not None or (
            reading.target_readable and self._may_have_lost(at, next_offset, target_end, period)
        ):
            passed_from = self._position.passed_from
            self._position.is_settled = self.loss.settles_skipped(
                at, self._position.skipped, next_offset, rules.flush_interval
            )
            self.loss.observe(at, reading, next_offset, period, passed_from)
            advance = self.loss.replicated(advance)
        self.replicated_total += advance
        by_size = policy is not None and policy.size_bytes is not None
        oldest_age = age.seconds
        if record_timestamp is not None and oldest_age is not None:
            # Kafka removes by timestamps: a record may have been old when it arrived.
            oldest_age = max(oldest_age, at - record_timestamp)
        room = headroom(
            next_offset,
            log_start,
            policy,
            lag_records=lag.records or 0,
            oldest_age=oldest_age,
            production_rate=self._production_rate(at, end) if by_size else None,
        )
        # Keywords would take longer than the rest of the call.
        return PartitionState(
            self.partition,
            log_start,
            source_end,
            target_start,
            target_end,
            next_offset,
            quality,
            lag.records,
            age.seconds,
            age.origin,
            progress,
            None if progress is _IDLE else self._stall.progress_at,
            room,
            None if sync is None else sync.upstream,
            None if sync is None else sync.at,
            None if stable_end is None else reading.open_transaction_records,
            None if is_undecided else self._stall.backlog_since,
            self._log,
        )

    def confirms_loss(self, at: float, state: PartitionState, rules: FlowRules) -> bool:
        """Add a round that read the same as the last one, which gave *state* at rest.

        Committed positions confirm a loss only some time after it was seen, live ones at once.
        """
        period = rules.position_period(state.quality)
        if not period or state.next_offset is None or state.source_start is None:
            return False
        next_offset, target_end = state.next_offset, state.target_end
        if not self._may_have_lost(at, next_offset, target_end, period):
            return False
        return self.loss.repeat(at, next_offset, state.source_start, target_end, period)

    def _may_have_lost(
        self, at: float, next_offset: int, target_end: int | None, period: float
    ) -> bool:
        """Add a round without a gap; True if its loss must be tracked from now on, or is."""
        if self.found_loss is not None:
            return True
        live_end = None if period else target_end
        # `CertainLoss` notes offsets that a live position passed without copies.
        if (
            live_end is not None
            and self._live_end is not None
            and next_offset - self._judged_to > live_end - self._live_end
        ):
            return True
        if self._sampled_at is None or at - self._sampled_at >= period:
            self._sampled_at, self._live_end = at, live_end
            self._judged_to = max(self._judged_to, next_offset)
        return False

    def _watch_tail(
        self,
        at: float,
        position: Position,
        lag: RecordLag,
        reading: PartitionReading,
        rules: FlowRules,
    ) -> tuple[bool, bool]:
        """Whether a transform has dropped the backlog, and whether it still may have."""
        commits = reading.task_commits
        if commits is None or lag.records == 0:
            self._tail = None
        if commits is None or not lag.records or lag.expired or reading.target_end is None:
            return False, False
        tail = self._tail = self._tail or DroppedTail()
        next_offset, quality = position
        flush = rules.flush_interval
        stall_after = rules.stall_after + rules.position_period(quality)
        is_dropped = tail.observe(
            at,
            next_offset,
            next_offset + lag.records,
            commits,
            stall_after=stall_after,
            commit_interval=flush,
        )
        return is_dropped, not is_dropped and tail.is_undecided(at, stall_after, flush)

    def _age(
        self,
        at: float,
        lag: RecordLag,
        next_offset: int,
        record_timestamp: float | None,
        rules: FlowRules,
    ) -> TimeLag:
        """The lag in seconds."""
        arrival = self._history.arrived(next_offset)
        present_at = None
        if arrival is None:
            present_at = self._history.base_seen_at or self._polled_at
        age = time_lag(at, lag, arrival, record_timestamp, present_at)
        if age.origin in _PENDING and rules.awaits_history and self._history.lacks(next_offset):
            return PENDING_TIME_LAG  # the clock of a producer may be hours off
        return age

    def _production_rate(self, at: float, end: int) -> float | None:
        """Records per second on the source."""
        if self._rate is None:
            self._rate = SmoothedRate(_HEADROOM_RATE_HALF_LIFE)
            self._rate.add(at, end)
        return self._rate.per_second

    def _unknown(self, reading: PartitionReading) -> PartitionState:
        return PartitionState(
            partition=self.partition,
            source_start=reading.source_start,
            source_end=reading.source_end,
            target_start=reading.target_start,
            target_end=reading.target_end,
            progressed_at=self._stall.progress_at,
            sync_upstream=None if reading.sync is None else reading.sync.upstream,
            sync_at=None if reading.sync is None else reading.sync.at,
            open_transaction_records=reading.open_transaction_records,
        )


def rests(state: PartitionState, policy: RetentionPolicy | None) -> bool:
    """Whether *state* holds until something else is read: no value in it depends on time."""
    return (
        state.progress is _IDLE
        and state.next_offset is not None
        and state.source_start is not None
        and state.source_start <= state.next_offset
        # The production rate changes with time.
        and (policy is None or policy.size_bytes is None)
    )


_NOTHING_SAVED = SavedLoss(0, 0)


@dataclass(slots=True, eq=False)
class LossTracker:
    """Certain loss over rounds, and whether MirrorMaker 2 has resumed after it."""

    _loss: CertainLoss
    saved: SavedLoss = _NOTHING_SAVED
    """What the state topic holds."""
    _ahead: int = 0
    """Lost offsets that the position has not passed yet."""
    _passed: int = 0
    """Those that it has passed in this round."""
    _inherited: int = 0
    """Those that another process has counted, which may be ahead of the position."""
    _emptied_at: float | None = None
    _log_replaced: bool = False
    _skipped: tuple[float, int] | None = None

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
        return self._loss.saved if self._loss.total >= self.saved.total else self.saved

    @property
    def awaits_confirmation(self) -> bool:
        """Whether skipped records count as lost if no later round contradicts it."""
        return self._skipped is not None

    def read_saved(self, saved: SavedLoss, *, same_log: bool | None) -> None:
        """Publish what the state topic holds; continue from it if another process counted more.

        *same_log*: whether it refers to the current log; None while that is not known.
        """
        if same_log is not None and saved.total > self._loss.total:
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

    def settles_skipped(
        self, at: float, skipped: int | None, next_offset: int, wait: float
    ) -> bool:
        """Count records that MirrorMaker 2 skipped at the start of a replaced log; True once done.

        *skipped* is None until a commit or sync shows it. It counts if it is still so *wait*
        seconds later: the first evidence may be a late commit or sync of the old log.
        """
        if not self._log_replaced or skipped is None:
            return not self._log_replaced
        if skipped:
            if self._skipped is None:
                self._skipped = at, skipped
            since, least = self._skipped
            if at - since < wait:
                return False
            self._loss.add_skipped(min(skipped, least), next_offset)
        self._skipped = None
        self._log_replaced = False
        return True

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
