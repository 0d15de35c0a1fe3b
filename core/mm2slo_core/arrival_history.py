"""When did a source offset arrive? Told from polls of the end offset alone, in little memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import NamedTuple

DEFAULT_BUDGET = 64
_SMALLEST_BUDGET = 4
_COARSE_POINTS = 3


class Bracket(NamedTuple):
    """The arrival of a record: surely within [earliest, latest], most likely at `likely`.

    `likely` assumes an even rate within the bracket. Epoch seconds of the observer's clock.
    """

    earliest: float
    latest: float
    likely: float


class ArrivalHistory:
    """Arrival brackets of one partition's offsets, from successive polls of its end.

    Invariants:
    A. Point k covers the offsets [end of k-1, end of k); the first starts at `_base`.
    B. A covered offset arrived within [earliest, latest] of its point: it was not there when
       the preceding successful poll was requested, and was there when this one was answered.
    C. Thinning joins neighbours: brackets get wider, never wrong.
    A partition that is caught up holds no arrays at all.
    """

    __slots__ = ("_base", "_budget", "_end", "_ends", "_times")

    def __init__(self, budget: int = DEFAULT_BUDGET) -> None:
        if budget < _SMALLEST_BUDGET:
            raise ValueError(f"budget is {budget!r}: expected {_SMALLEST_BUDGET} points or more")
        self._budget = budget
        self._base: int | None = None
        self._end = 0
        self._ends: array[int] | None = None
        self._times: array[float] | None = None  # earliest, latest, earliest, latest, ...

    def __len__(self) -> int:
        return 0 if self._ends is None else len(self._ends)

    @property
    def first_offset(self) -> int | None:
        """The lowest offset that can be told; None before the first poll."""
        return self._base

    def add(self, previous_request: float | None, this_response: float, end_offset: int) -> None:
        """Take the end offset of one successful poll.

        *previous_request* is the request time of the preceding successful poll, moved or not;
        None when there was none. The first poll, a poll without predecessor and an end that went
        back start the history anew: what lies below is not known.
        """
        if self._base is None or previous_request is None or end_offset < self._end:
            self._restart(end_offset)
            return
        if end_offset == self._end:
            return
        if self._ends is None or self._times is None:
            self._ends, self._times = array("q"), array("d")
        self._ends.append(end_offset)
        self._times.extend((previous_request, this_response))
        self._end = end_offset
        if len(self._ends) > self._budget:
            self._thin(self._ends, self._times)

    def arrived(self, offset: int) -> Bracket | None:
        """The bracket of *offset*; None where the history does not reach, back or forth."""
        if self._base is None or self._ends is None or self._times is None:
            return None
        if not self._base <= offset < self._end:
            return None
        k = bisect_right(self._ends, offset)
        first = self._ends[k - 1] if k else self._base
        earliest, latest = self._times[2 * k], self._times[2 * k + 1]
        share = (offset - first) / (self._ends[k] - first)
        # Rounding must not push the estimate out of its own bracket.
        likely = min(max(earliest + share * (latest - earliest), earliest), latest)
        return Bracket(earliest, latest, likely)

    def forget_below(self, next_offset: int, *, coarse_below: int | None = None) -> None:
        """Drop what is replicated. A position that later steps back is then not told.

        What lies from there up to *coarse_below* is kept in few points: it is rarely asked for.
        """
        if self._ends is None or self._times is None or self._base is None:
            return
        gone = bisect_right(self._ends, next_offset)
        if coarse_below is not None:
            coarse = bisect_right(self._ends, coarse_below) - gone
            if coarse > _COARSE_POINTS:
                last = gone + coarse - _COARSE_POINTS
                del self._ends[gone:last]
                del self._times[2 * gone + 1 : 2 * last + 1]
        if not gone:
            return
        self._base = self._ends[gone - 1]
        if gone == len(self._ends):
            self._ends = self._times = None
        else:
            del self._ends[:gone]
            del self._times[: 2 * gone]

    def _restart(self, end_offset: int) -> None:
        self._base = self._end = end_offset
        self._ends = self._times = None

    def _thin(self, ends: array[int], times: array[float]) -> None:
        """Join a quarter of the points: the pairs that are narrowest for their age.

        Judging width by age keeps the error of a lag proportional to the lag itself. A quarter at
        once makes the cost per poll constant.
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
                if len(joined) >= max(1, self._budget // 4):
                    break
        # Joining k with k+1 drops the end of k, the latest of k and the earliest of k+1.
        self._ends = array("q", (end for k, end in enumerate(ends) if k not in joined))
        dropped = {t for k in joined for t in (2 * k + 1, 2 * k + 2)}
        self._times = array("d", (t for i, t in enumerate(times) if i not in dropped))
