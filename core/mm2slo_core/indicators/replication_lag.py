"""Replication lag in records and seconds, arrival times, and retention headroom.

The high watermark is the offset of the next record, and `next_offset` the next source offset to
replicate; in a caught-up partition both are equal.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from mm2slo_core.records.timeline_record import PollTimes


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
    # Clamped to 0, a truncated source would look caught up for as long as it takes to fill again.
    if next_offset > high_watermark:
        return RecordLag(None)
    # MirrorMaker 2's consumer continues at the log start (`auto.offset.reset=earliest`): what is
    # below it can only be lost, and must not count as lag that will shrink.
    if log_start is not None and log_start > next_offset:
        return RecordLag(high_watermark - log_start, log_start - next_offset)
    if next_offset == high_watermark:
        return NO_LAG
    return RecordLag(high_watermark - next_offset)


def open_transaction_records(high_watermark: int, last_stable_offset: int) -> int | None:
    """Return the offsets held back by open transactions; None if read in the wrong order."""
    # The last stable offset is read first: it can only be below a later high watermark (KIP-98).
    held = high_watermark - last_stable_offset
    return held if held >= 0 else None


class LagOrigin(StrEnum):
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


# Until Python 3.12, each access to a member of an enum takes as long as a call.
_HISTORY: Final = LagOrigin.HISTORY
NO_TIME_LAG = TimeLag(0.0, LagOrigin.NO_BACKLOG)
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
        return NO_TIME_LAG
    if arrival is not None:
        return TimeLag(now - arrival.likely, _HISTORY)
    if record_timestamp is not None:
        # CreateTime is the producer's clock. Brokers before Kafka 4.0 accept any time in the future
        # by default (`message.timestamp.after.max.ms`), which would make the lag negative.
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


DEFAULT_MAX_POINTS = 64
_MIN_POINTS = 4
_COARSE_POINTS = 3
_CLOCK_SKEW_SECONDS = 10.0

_SPACING = 0.2
"""Width of extended brackets as a share of their age."""


class Bracket(NamedTuple):
    """The arrival of a record: within [earliest, latest], most likely at `likely`.

    `likely` assumes a constant rate within the bracket. Epoch seconds of the exporter's clock.
    """

    earliest: float
    latest: float
    likely: float


class ArrivalHistory:
    """Arrival brackets of one partition's offsets, from successive polls of its end offset.

    Invariants:
    A. Point k covers the offsets [end of k-1, end of k); the first starts at `_base`.
    B. A covered offset arrived within [earliest, latest] of its point: it was absent when the
       previous successful poll was requested, and present when this one was answered.
    C. Thinning merges neighbours: brackets get wider, never wrong.
    A caught-up partition holds no arrays.
    """

    __slots__ = ("_base", "_base_seen", "_end", "_ends", "_max_points", "_times")

    def __init__(self, max_points: int = DEFAULT_MAX_POINTS) -> None:
        if max_points < _MIN_POINTS:
            raise ValueError(f"max_points is {max_points!r}; expected {_MIN_POINTS} points or more")
        self._max_points = max_points
        self._base: int | None = None
        self._base_seen: tuple[float | None, float] | None = None
        """Previous request and response of the poll that saw `_base`, while it can be extended."""
        self._end = 0
        self._ends: array[int] | None = None
        self._times: array[float] | None = None  # earliest, latest, earliest, latest, ...

    def __len__(self) -> int:
        return 0 if self._ends is None else len(self._ends)

    @property
    def first_offset(self) -> int | None:
        """The lowest offset with a known arrival; None before the first poll."""
        return self._base

    @property
    def base_seen_at(self) -> float | None:
        """When all lower offsets than the first with a known arrival had arrived; None: unknown."""
        if self._times is not None:
            return self._times[0]
        return None if self._base_seen is None else self._base_seen[1]

    def lacks(self, offset: int) -> bool:
        """Whether `extend_back` may add the arrival of *offset*."""
        return self._base_seen is not None and self._base is not None and offset < self._base

    def add(self, previous_request: float | None, this_response: float, end_offset: int) -> None:
        """Add the end offset of a successful poll.

        *previous_request* is the request time of the previous successful poll; None without one.
        The history restarts if *previous_request* is None or the end offset went back: arrivals
        of lower offsets are then not known.
        """
        if self._base is None or previous_request is None or end_offset < self._end:
            self._base_seen = _first_seen(this_response) if self._base is None else None
            self._restart(end_offset)
            return
        if end_offset == self._end:
            return
        if self._ends is None or self._times is None:
            self._ends, self._times = array("q"), array("d")
        self._ends.append(end_offset)
        self._times.append(previous_request)
        self._times.append(this_response)
        self._end = end_offset
        if len(self._ends) > self._max_points:
            self._thin(self._ends, self._times)

    def extend_back(self, end_offset: int, times: PollTimes) -> bool:
        """Add an earlier poll of another process; polls are added newest first.

        Unchanged polls are not written, but each record contains the time of the preceding poll;
        a writer's first record does not. False if the log was truncated after this poll, so that
        nothing older can be added. Points are not thinned: it ends when all are used.
        """
        if self._base is None or self._base_seen is None:
            return True
        earliest, latest = self._base_seen
        if end_offset > self._base:
            if latest - times.answered_at < _CLOCK_SKEW_SECONDS:
                return True  # of another replica, whose clock is behind
            self._base_seen = None
            return False
        seen = (times.previous_requested_at, times.answered_at)
        if end_offset == self._base:
            self._base_seen = seen
        elif self._is_too_close(times.answered_at, latest):
            self._base_seen = (times.previous_requested_at, latest)
        else:
            if self._ends is None or self._times is None:
                self._ends, self._times = array("q"), array("d")
            self._ends.insert(0, self._base)
            earliest = max(earliest or times.requested_at, times.requested_at)
            self._times[0:0] = array("d", (earliest, latest))
            self._base = end_offset
            self._base_seen = seen if len(self._ends) < self._max_points else None
        return True

    def _is_too_close(self, earlier: float, later: float) -> bool:
        """Whether two polls share a bracket: the second half of the points is for older ones."""
        if self._times is None or len(self) < self._max_points // 2:
            return False
        return later - earlier < _SPACING * (self._times[-1] - earlier)

    def arrived(self, offset: int) -> Bracket | None:
        """Return the bracket of *offset*; None outside of the history."""
        if self._base is None or self._ends is None or self._times is None:
            return None
        if not self._base <= offset < self._end:
            return None
        k = bisect_right(self._ends, offset)
        first = self._ends[k - 1] if k else self._base
        earliest, latest = self._times[2 * k], self._times[2 * k + 1]
        share = (offset - first) / (self._ends[k] - first)
        # Rounding must not move the estimate out of its bracket.
        likely = min(max(earliest + share * (latest - earliest), earliest), latest)
        return Bracket(earliest, latest, likely)

    def forget_below(self, next_offset: int, *, coarse_below: int | None = None) -> None:
        """Drop replicated offsets; if the position later goes back, their arrivals are not known.

        Offsets from there up to *coarse_below* are rarely read and kept in few points.
        """
        if self._ends is None or self._times is None or self._base is None:
            return
        replicated = bisect_right(self._ends, next_offset)
        if coarse_below is not None and len(self._ends) > _COARSE_POINTS:
            coarse = bisect_right(self._ends, coarse_below) - replicated
            if coarse > _COARSE_POINTS:
                last = replicated + coarse - _COARSE_POINTS
                del self._ends[replicated:last]
                del self._times[2 * replicated + 1 : 2 * last + 1]
        if not replicated:
            return
        self._base = self._ends[replicated - 1]
        self._base_seen = None
        if replicated == len(self._ends):
            self._ends = self._times = None
        else:
            del self._ends[:replicated]
            del self._times[: 2 * replicated]

    def _restart(self, end_offset: int) -> None:
        self._base = self._end = end_offset
        self._ends = self._times = None

    def _thin(self, ends: array[int], times: array[float]) -> None:
        """Merge a quarter of the points: the pairs that are narrowest for their age.

        Width relative to age keeps the error of a lag proportional to the lag. Merging a quarter
        at once keeps the cost per poll constant.
        """
        newest = times[-1]
        pairs = sorted(
            range(len(ends) - 1),
            key=lambda k: (times[2 * k + 3] - times[2 * k]) / (newest - times[2 * k] + 1e-9),
        )
        joined: set[int] = set()
        for k in pairs:
            if k - 1 not in joined and k + 1 not in joined:
                joined.add(k)
                if len(joined) >= max(1, self._max_points // 4):
                    break
        # Merging k with k+1 drops the end of k, the latest of k and the earliest of k+1.
        self._ends = array("q", (end for k, end in enumerate(ends) if k not in joined))
        dropped = {t for k in joined for t in (2 * k + 1, 2 * k + 2)}
        self._times = array("d", (t for i, t in enumerate(times) if i not in dropped))


@lru_cache(maxsize=1)
def _first_seen(at: float) -> tuple[None, float]:
    """One object for all partitions of a poll."""
    return None, at


_UNLIMITED = "-1"  # of `retention.ms` and `retention.bytes`; Kafka's topic configurations

LOSS_LOOKBACK: Final = 24 * 3600.0
"""Seconds before a time range in which the count of lost records is searched: across a day without
scrapes, a new loss is found and an old one does not count again."""

HEADROOM_LEAST: Final = 15 * 60.0
"""Seconds of headroom below which the next interruption of a flow loses records."""

HEADROOM_AHEAD: Final = 4 * 3600.0
"""Seconds that on-call needs to find the cause and replicate the backlog, or raise retention."""


class RetentionLimit(StrEnum):
    """The limit that removes the record at the position first."""

    TIME = "time"
    SIZE = "size"
    UNLIMITED = "unlimited"
    """No limit is set, the topic is only compacted, or nothing is produced."""
    PASSED = "passed"
    """The record is already removed: the log start is beyond the position."""
    UNKNOWN = "unknown"
    """The configuration, the record's age or the production rate is not known."""


_BY_TIME: Final = RetentionLimit.TIME
_UNLIMITED_LIMIT: Final = RetentionLimit.UNLIMITED


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    seconds: float | None
    """`retention.ms`; None: unlimited."""
    size_bytes: int | None
    """`retention.bytes` per partition; None: unlimited."""

    @classmethod
    def from_topic_config(cls, config: Mapping[str, str]) -> RetentionPolicy:
        """Read `cleanup.policy`, `retention.ms` and `retention.bytes`.

        A topic that is only compacted has no limit. Raises KeyError if one of the three is
        missing (brokers always return them) and ValueError if one is not a number.
        """
        # Only the policy `delete` applies the two limits; with `compact` alone Kafka ignores them.
        policies = {policy.strip() for policy in config["cleanup.policy"].split(",")}
        if "delete" not in policies:
            return cls(None, None)
        milliseconds, size = config["retention.ms"].strip(), config["retention.bytes"].strip()
        return cls(
            seconds=None if milliseconds == _UNLIMITED else int(milliseconds) / 1000,
            size_bytes=None if size == _UNLIMITED else int(size),
        )


class Headroom(NamedTuple):
    """Distance between the log start and the position.

    `records` is negative by the number of records already lost. `seconds` is None for the limits
    unlimited and unknown, 0 for passed, and negative if the record at the position is older than
    the limit and is kept only until its segment is removed.
    """

    records: int
    seconds: float | None
    limit: RetentionLimit


def headroom(
    next_offset: int,
    log_start: int,
    policy: RetentionPolicy | None,
    *,
    lag_records: int,
    oldest_age: float | None,
    production_rate: float | None,
) -> Headroom:
    """Return the time until retention reaches the position: the smaller one of time and size.

    By time: retention.ms - *oldest_age*, the age in seconds of the record at the position
    (retention.ms without a backlog). Kafka removes whole segments by their largest timestamp
    (`UnifiedLog.deleteRetentionMsBreachedSegments`), so the record is kept at least that long, if
    its timestamp is not older.
    By size: (next offset - log start) / *production_rate* in records per second, as if the log
    were full and each new byte removed an old one: a lower bound, since the log may have room and
    the newest segment is never removed.
    If one limit that is set cannot be computed, the result is unknown.
    """
    records = next_offset - log_start
    if records < 0:
        return Headroom(records, 0.0, RetentionLimit.PASSED)
    if policy is None:
        return Headroom(records, None, RetentionLimit.UNKNOWN)
    seconds: float | None = None
    limit = _UNLIMITED_LIMIT
    if policy.seconds is not None:
        seconds, limit = policy.seconds, _BY_TIME
        # Without a backlog, the next record to replicate is not written yet: it has all of its
        # time.
        if lag_records:
            if oldest_age is None:
                return Headroom(records, None, RetentionLimit.UNKNOWN)
            seconds -= oldest_age
    if policy.size_bytes is not None:
        # `retention.bytes` is per partition, and Kafka removes a segment only if the rest is still
        # as large (`UnifiedLog.deleteRetentionSizeBreachedSegments`).
        if production_rate is None:
            return Headroom(records, None, RetentionLimit.UNKNOWN)
        if production_rate > 0 and (seconds is None or records / production_rate <= seconds):
            seconds, limit = records / production_rate, RetentionLimit.SIZE
    return Headroom(records, seconds, limit)
