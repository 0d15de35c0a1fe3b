"""Service-level indicators as counters of good, settled and unknown events.

Events move good and total together, once, when they are settled; what cannot be known moves
`unknown`, which lowers coverage and touches no ratio. Counters never go back: an event that was
unknown and is settled by later evidence has moved both.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALL = "all"
"""The tier of indicators that have only one."""


class Sli(StrEnum):
    """The indicators; the value is the label `sli`."""

    AVAILABILITY = "availability"
    LATENCY = "latency"
    DATA_FRESHNESS = "data_freshness"
    COMPLETENESS = "completeness"
    UNIQUENESS = "uniqueness"
    ORDER = "order"
    AFFINITY = "affinity"
    CHECKPOINT_FRESHNESS = "checkpoint_freshness"


class SliKey(NamedTuple):
    """One indicator at one threshold."""

    sli: Sli
    tier: str = ALL


class SliCount(NamedTuple):
    """Events of one indicator: good of total, and those that cannot be known."""

    good: int = 0
    total: int = 0
    unknown: int = 0


NO_EVENTS = SliCount()
GOOD = SliCount(1, 1, 0)
BAD = SliCount(0, 1, 0)
UNKNOWN = SliCount(0, 0, 1)


def latency_tier(seconds: float) -> str:
    """The label of a latency threshold: 10.0 -> `10s`, 0.5 -> `0.5s`."""
    return f"{seconds:.12g}s"


class SliCounters:
    """Counters of a closed set of indicators, each there from the start at 0.

    A series that only appears with its first event would hide that event from `rate()`.
    """

    __slots__ = ("_counts",)

    def __init__(self, keys: Iterable[SliKey]) -> None:
        self._counts = dict.fromkeys(keys, NO_EVENTS)

    def __contains__(self, key: SliKey) -> bool:
        return key in self._counts

    def __getitem__(self, key: SliKey) -> SliCount:
        return self._counts[key]

    def add(self, key: SliKey, events: SliCount) -> None:
        """Count *events*.

        Raises KeyError for an indicator that was not declared, and ValueError for events that
        would move a counter back or make more good than there are.
        """
        if not 0 <= events.good <= events.total or events.unknown < 0:
            raise ValueError(f"{events} cannot be counted: expected 0 <= good <= total, unknown")
        good, total, unknown = self._counts[key]
        self._counts[key] = SliCount(
            good + events.good, total + events.total, unknown + events.unknown
        )

    def add_all(self, counts: Mapping[SliKey, SliCount]) -> None:
        """Count each of *counts*; see add."""
        for key, events in counts.items():
            self.add(key, events)

    def snapshot(self) -> dict[SliKey, SliCount]:
        """A copy, in the order of declaration."""
        return dict(self._counts)


class DueSlices(NamedTuple):
    """Time slices that ended since the last look: at most one can be judged, the rest is missed."""

    judged: int
    missed: int
    uncounted: int = 0
    """Missed slices beyond the limit; they appear in no counter."""


class SliceClock:
    """Cuts time into slices of *length* seconds, aligned to the epoch.

    The newest ended slice is judged by the figures of now, which must be no older than a slice;
    earlier ones were missed and are unknown, up to *limit* of them: an exporter that was away for
    a month must not drown the counters. Replicas cut at the same moments.
    """

    __slots__ = ("_last", "_length", "_limit")

    def __init__(self, length: float, started_at: float, limit: int = 5760) -> None:
        """Begin after *started_at*: the start, or the last slice judged before a restart."""
        if length <= 0:
            raise ValueError(f"slice length is {length!r}: expected a positive number of seconds")
        self._length = length
        self._limit = limit
        self._last = int(started_at // length)

    def due(self, now: float) -> DueSlices:
        """Slices that ended since the last call; a clock that went back gives none."""
        current = int(now // self._length)
        ended = current - self._last
        if ended <= 0:
            return DueSlices(0, 0)
        self._last = current
        missed = min(ended - 1, self._limit)
        return DueSlices(1, missed, ended - 1 - missed)
