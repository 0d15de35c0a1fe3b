"""One source partition of a flow over time: position, lag, progress, headroom, loss.

Rule for what is read from where: a figure that compares both clusters is told while the source is
readable. While the target is not, the newest known position stands and the quality says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mm2slo_core.history import ArrivalHistory
from mm2slo_core.lag import (
    LagOrigin,
    SmoothedRate,
    open_transaction_records,
    record_lag,
    time_lag,
)
from mm2slo_core.offsets import PositionQuality, estimate_position
from mm2slo_core.retention import CertainLoss, RetentionPolicy, SavedLoss, headroom
from mm2slo_core.stall import Progress, StallWatch
from mm2slo_exporter.state.model import PartitionState

if TYPE_CHECKING:
    from mm2slo_core.offsets import Position
    from mm2slo_core.timeline_record import PollTimes
    from mm2slo_exporter.observation import Sync, TailProbe

_HEADROOM_RATE_HALF_LIFE = 300.0
_NOTHING_COPIED = frozenset({PositionQuality.NOT_STARTED, PositionQuality.SOURCE_RESET})
"""Here the position is the log start: retention moves it, replication does not."""


@dataclass(frozen=True, slots=True)
class FlowRules:
    """What of a flow's configuration decides how a partition is judged."""

    stall_after: float
    flush_interval: float
    exactly_once: bool
    shared_target: bool
    reads_committed: bool
    has_positions: bool = True
    """False: another engine than MirrorMaker 2, whose offsets are not comparable."""


@dataclass(frozen=True, slots=True)
class PartitionReading:
    """The figures of one round for one partition; None is what was not read."""

    source_end: int | None
    source_start: int | None
    stable_end: int | None
    target_end: int | None
    target_start: int | None
    committed: int | None
    sync: Sync | None
    probe: TailProbe | None
    target_readable: bool = True
    """False: what the target told is of earlier, and MirrorMaker 2 may have gone on since."""


class PartitionTracker:
    """Remembers what one partition's figures need from earlier rounds."""

    __slots__ = (
        "_history",
        "_last_end",
        "_loss",
        "_polled_at",
        "_position",
        "_rate",
        "_stall",
        "partition",
        "replicated_total",
        "source_total",
        "truncations",
    )

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self._history = ArrivalHistory()
        self._stall = StallWatch()
        self._loss = CertainLoss()
        self._rate: SmoothedRate | None = None
        self._position: Position | None = None
        self._last_end: int | None = None
        self._polled_at: float | None = None
        self.source_total = 0
        self.replicated_total = 0
        self.truncations = 0

    @property
    def lost_total(self) -> int:
        """Records certainly lost to retention so far."""
        return self._loss.total

    @property
    def saved_loss(self) -> SavedLoss:
        """What a restart needs to go on counting losses."""
        return self._loss.saved

    def remember_arrival(self, end: int, times: PollTimes) -> None:
        """Take a poll that an earlier process wrote to the timeline; it counts nothing.

        Polls without news are not written, but each record names the poll before it. A writer's
        first record knows of none: what it tells is then as old as the record before it.
        """
        if self._polled_at is None:
            self._history.add(None, times.answered_at, end)
        else:
            before = max(times.previous_requested_at or self._polled_at, self._polled_at)
            self._history.add(before, times.answered_at, end)
        self._polled_at = times.requested_at
        self._last_end = end

    def restore_loss(self, saved: SavedLoss) -> None:
        """Go on counting losses where an earlier process ended."""
        self._loss = CertainLoss(saved)

    def source_recreated(self) -> None:
        """Start anew: the topic's offsets mean other records from now on."""
        self._history = ArrivalHistory()
        self._stall = StallWatch()
        self._loss.source_recreated()
        self._position = None
        self._last_end = None
        self._polled_at = None
        self._rate = None

    def observe_source_end(self, end: int, requested_at: float, answered_at: float) -> None:
        """Take the source's high watermark of a round that the source answered."""
        if requested_at == self._polled_at:
            return
        if self._last_end is not None:
            if end < self._last_end:
                self.truncations += 1
                self._loss.source_recreated()
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
        """Turn one round's figures into what is published."""
        end = reading.stable_end if rules.reads_committed else reading.source_end
        if not rules.has_positions:
            if end is not None:
                self._history.forget_below(end)
            return self._unknown(reading)
        position = self._locate(reading, end, rules)
        if end is None or position is None:
            return self._unknown(reading)
        next_offset = max(position.next_offset, _skipped_to(position.next_offset, reading.probe))
        lag = record_lag(end, next_offset, reading.source_start)
        # Not from the log start: what retention removed must not make a stopped flow look fresher.
        good = min(next_offset, _copied_for_good(reading, next_offset))
        self._history.forget_below(good, coarse_below=next_offset)
        age = time_lag(
            at,
            lag,
            self._history.arrived(next_offset) if lag.records or lag.expired else None,
            _record_timestamp(max(next_offset, reading.source_start or 0), reading.probe),
        )
        period = 0.0 if position.quality is PositionQuality.LIVE else rules.flush_interval
        progress = self._stall.observe(
            at,
            lag.records if reading.target_readable else None,
            # Where nothing is known to be copied the position is the log start: no progress.
            0 if position.quality in _NOTHING_COPIED else next_offset,
            rules.stall_after,
            period,
        )
        room = None
        if reading.source_start is not None:
            if reading.target_readable:
                self._loss.observe(
                    at,
                    next_offset,
                    reading.source_start,
                    position_period=period,
                    target_end=reading.target_end,
                )
            room = headroom(
                next_offset,
                reading.source_start,
                policy,
                records_waiting=lag.records or 0,
                oldest_age=age.seconds,
                production_rate=self._production_rate(at, end, policy),
            )
        return PartitionState(
            partition=self.partition,
            source_start=reading.source_start,
            source_end=reading.source_end,
            target_start=reading.target_start,
            target_end=reading.target_end,
            next_offset=next_offset,
            quality=position.quality,
            lag_records=lag.records,
            lag_seconds=age.seconds,
            lag_origin=age.origin,
            progress=progress,
            progressed_at=self._stall.progress_at,
            headroom=room,
            sync_upstream=None if reading.sync is None else reading.sync.upstream,
            sync_at=None if reading.sync is None else reading.sync.at,
            open_transaction_records=_held_back(reading),
            waits_since=self._stall.waits_since,
        )

    def _locate(
        self, reading: PartitionReading, end: int | None, rules: FlowRules
    ) -> Position | None:
        """Estimate the position, and count what was replicated since the last one."""
        if end is None or reading.source_start is None:
            return self._position
        before = self._position
        position = estimate_position(
            committed=reading.committed,
            sync=reading.sync,
            target_end=reading.target_end,
            high_watermark=end,
            log_start=reading.source_start,
            shared_target=rules.shared_target,
            exactly_once=rules.exactly_once,
        )
        if before is not None:
            stale = position.quality is PositionQuality.STALE
            if stale and position.next_offset < before.next_offset <= end:
                # The target does not answer: what is known to be copied stays copied.
                position = replace(position, next_offset=before.next_offset)
            if position.quality not in _NOTHING_COPIED:
                self.replicated_total += max(0, position.next_offset - before.next_offset)
        self._position = position
        return position

    def _production_rate(self, at: float, end: int, policy: RetentionPolicy | None) -> float | None:
        """Records per second on the source; kept only where a size limit needs it."""
        if policy is None or policy.size_bytes is None:
            return None
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
            next_offset=None,
            quality=None,
            lag_records=None,
            lag_seconds=None,
            lag_origin=LagOrigin.ABSENT,
            progress=Progress.UNKNOWN,
            progressed_at=self._stall.progress_at,
            headroom=None,
            sync_upstream=None if reading.sync is None else reading.sync.upstream,
            sync_at=None if reading.sync is None else reading.sync.at,
            open_transaction_records=_held_back(reading),
        )


def _copied_for_good(reading: PartitionReading, next_offset: int) -> int:
    """Where MirrorMaker 2 starts again once it is killed: the position then steps back to here."""
    if reading.committed is not None:
        return reading.committed + 1
    return next_offset if reading.sync is None else reading.sync.upstream + 1


def _skipped_to(next_offset: int, probe: TailProbe | None) -> int:
    """Where the next record really is: offsets without records are nothing to wait for."""
    if probe is None or not probe.next_offset <= next_offset <= probe.through:
        return next_offset
    if probe.first_offset is None:
        return probe.through
    return max(next_offset, probe.first_offset)


def _record_timestamp(offset: int, probe: TailProbe | None) -> float | None:
    if probe is not None and probe.first_offset == offset:
        return probe.first_timestamp
    return None


def _held_back(reading: PartitionReading) -> int | None:
    if reading.source_end is None or reading.stable_end is None:
        return None
    return open_transaction_records(reading.source_end, reading.stable_end)
