"""Replication lag in records and seconds, and the time to catch up.

The high watermark is the offset of the next record, and `next_offset` the next source offset to
replicate; in a caught-up partition both are equal.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mm2slo_core.arrival_history import Bracket


class RecordLag(NamedTuple):
    """Unreplicated source records.

    `records` is None if the position is beyond the end: the source was truncated or re-created, or
    other producers write to the target topic. `expired` are the records between the position and
    the log start: they can no longer be replicated, so they are loss, not lag.
    """

    records: int | None
    expired: int = 0


NO_LAG = RecordLag(0)


def record_lag(high_watermark: int, next_offset: int, log_start: int | None = None) -> RecordLag:
    """Return the unreplicated records: high watermark - max(next offset, log start).

    Pass the last stable offset as *high_watermark* if MM2 uses `read_committed`. Read the position
    before the end offset, else a moving partition seems to be ahead of its source. A lag is never
    clamped to 0.
    """
    if next_offset > high_watermark:
        return RecordLag(None)
    if log_start is not None and log_start > next_offset:
        return RecordLag(high_watermark - log_start, log_start - next_offset)
    if next_offset == high_watermark:
        return NO_LAG
    return RecordLag(high_watermark - next_offset)


def open_transaction_records(high_watermark: int, last_stable_offset: int) -> int | None:
    """Return the offsets held back by open transactions; None if read in the wrong order."""
    held = high_watermark - last_stable_offset
    return held if held >= 0 else None


class LagOrigin(StrEnum):
    """The source of a lag in seconds."""

    NO_BACKLOG = "no_backlog"
    HISTORY = "history"
    """Polled end offsets, by the exporter's clock."""
    RECORD = "record"
    """The timestamp of the oldest unreplicated record, by its producer's clock."""
    PENDING = "pending"
    """Not known until the timeline, which an earlier process has written, has been read."""
    ABSENT = "absent"


class TimeLag(NamedTuple):
    """Age of the oldest source record not yet replicated, in seconds.

    None if neither its arrival nor its timestamp is known. It is never negative.
    """

    seconds: float | None
    origin: LagOrigin


_NO_TIME_LAG = TimeLag(0.0, LagOrigin.NO_BACKLOG)
UNKNOWN_TIME_LAG = TimeLag(None, LagOrigin.ABSENT)
PENDING_TIME_LAG = TimeLag(None, LagOrigin.PENDING)


def time_lag(
    now: float,
    lag: RecordLag,
    arrival: Bracket | None,
    record_timestamp: float | None = None,
    present_at: float | None = None,
) -> TimeLag:
    """Return the age of the oldest unreplicated record: by *arrival*, else by its timestamp.

    *arrival* is the history's bracket of the next offset, even if retention has removed that
    record: otherwise lost records would reduce the lag. *record_timestamp* is the timestamp of the
    oldest unreplicated record, if it had to be read; a clock ahead does not make it younger than
    *present_at*, when it was seen on the source (default: *now*).
    """
    if lag.records is None:
        return UNKNOWN_TIME_LAG
    if lag.records == 0 and not lag.expired:
        return _NO_TIME_LAG
    if arrival is not None:
        return TimeLag(now - arrival.likely, LagOrigin.HISTORY)
    if record_timestamp is not None:
        latest = now if present_at is None else present_at
        return TimeLag(now - min(record_timestamp, latest), LagOrigin.RECORD)
    return UNKNOWN_TIME_LAG


class SmoothedRate:
    """Change per second of a sampled value, smoothed exponentially.

    The weight of a sample halves every *half_life* seconds, also with irregular samples.
    """

    __slots__ = ("_at", "_half_life", "_rate", "_value")

    def __init__(self, half_life: float = 60.0) -> None:
        if half_life <= 0:
            raise ValueError(f"half_life is {half_life!r}; expected a positive number of seconds")
        self._half_life = half_life
        self._at: float | None = None
        self._value = 0.0
        self._rate: float | None = None

    @property
    def per_second(self) -> float | None:
        """The smoothed rate; None before two samples of different times."""
        return self._rate

    def add(self, at: float, value: float) -> None:
        """Add the value at time *at*; a sample not later than the last one is ignored."""
        if self._at is None:
            self._at, self._value = at, value
            return
        elapsed = at - self._at
        if elapsed <= 0:
            return
        sampled = (value - self._value) / elapsed
        if self._rate is None:
            self._rate = sampled
        else:
            kept: float = 2.0 ** (-elapsed / self._half_life)
            self._rate = kept * self._rate + (1.0 - kept) * sampled
        self._at, self._value = at, value


def catch_up_seconds(lag_records: int, lag_rate: float | None) -> float | None:
    """Return the time until the lag is 0 at the current net rate.

    *lag_rate* is the change of the lag in records per second (negative while catching up).
    0 without lag; None if the rate is unknown or the lag does not decrease.
    """
    if lag_records == 0:
        return 0.0
    if lag_rate is None or lag_rate >= 0:
        return None
    return lag_records / -lag_rate
