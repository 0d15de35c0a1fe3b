"""Arrival times of source offsets, derived from polls of the end offset."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mm2slo_core.timeline_record import PollTimes

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
        self._times.extend((previous_request, this_response))
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
        if coarse_below is not None:
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
