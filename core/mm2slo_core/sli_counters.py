"""SLIs as counters of good, total and unknown events.

A settled event increments good and total together, once. An event that cannot be known increments
`unknown`, which lowers coverage and no ratio. Counters never decrease: an unknown event that later
evidence settles has incremented both.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALL = "all"
"""The tier of SLIs that have only one."""


class Sli(StrEnum):
    """The value is the label `sli`."""

    AVAILABILITY = "availability"
    LATENCY = "latency"
    DATA_FRESHNESS = "data_freshness"
    COMPLETENESS = "completeness"
    UNIQUENESS = "uniqueness"
    ORDER = "order"
    AFFINITY = "affinity"
    CHECKPOINT_FRESHNESS = "checkpoint_freshness"


class SliKey(NamedTuple):
    """An SLI with one threshold."""

    sli: Sli
    tier: str = ALL


class SliCount(NamedTuple):
    """Events of one SLI: good, total and unknown."""

    good: int = 0
    total: int = 0
    unknown: int = 0


NO_EVENTS = SliCount()
GOOD = SliCount(1, 1, 0)
BAD = SliCount(0, 1, 0)
UNKNOWN = SliCount(0, 0, 1)


def latency_tier(seconds: float) -> str:
    """Return the label of a latency threshold: 10.0 -> `10s`, 0.5 -> `0.5s`."""
    return f"{seconds:.12g}s"


class SliCounters:
    """Counters of a fixed set of SLIs, each initialised at 0.

    A series that appears with its first event would hide that event from `rate()`.
    """

    __slots__ = ("_counts",)

    def __init__(
        self, keys: Iterable[SliKey], counted: Mapping[SliKey, SliCount] | None = None
    ) -> None:
        """*counted*: continue from these."""
        before = counted or {}
        self._counts = {key: before.get(key, NO_EVENTS) for key in keys}

    def __contains__(self, key: SliKey) -> bool:
        return key in self._counts

    def __getitem__(self, key: SliKey) -> SliCount:
        return self._counts[key]

    def add(self, key: SliKey, events: SliCount) -> None:
        """Count *events*.

        Raises KeyError for an undeclared SLI, and ValueError for negative events or more good than
        total events.
        """
        if not 0 <= events.good <= events.total or events.unknown < 0:
            raise ValueError(f"invalid {events}; expected 0 <= good <= total and unknown >= 0")
        good, total, unknown = self._counts[key]
        self._counts[key] = SliCount(
            good + events.good, total + events.total, unknown + events.unknown
        )

    def add_all(self, counts: Mapping[SliKey, SliCount]) -> None:
        for key, events in counts.items():
            self.add(key, events)

    def snapshot(self) -> dict[SliKey, SliCount]:
        """Return a copy, in the order of declaration."""
        return dict(self._counts)


class DueSlices(NamedTuple):
    """Time slices that ended since the last call: at most one is measured, the others missed."""

    measured: int
    missed: int
    uncounted: int = 0
    """Missed slices beyond the limit, in no counter."""


class SliceClock:
    """Divides time into slices of *length* seconds, aligned to the epoch.

    The newest ended slice is measured by current values, which must be no older than a slice.
    Earlier ones were missed and are unknown, up to *limit*, so that an exporter that was down for
    a month does not flood the counters. All replicas use the same slices.
    """

    __slots__ = ("_last", "_length", "_limit")

    def __init__(self, length: float, started_at: float, limit: int = 5760) -> None:
        """Start after *started_at*: the start, or the last slice measured before a restart."""
        if length <= 0:
            raise ValueError(f"slice length is {length!r}; expected a positive number of seconds")
        self._length = length
        self._limit = limit
        self._last = int(started_at // length)

    def due(self, now: float) -> DueSlices:
        """Return the slices that ended since the last call; none if the clock went back."""
        current = int(now // self._length)
        ended = current - self._last
        if ended <= 0:
            return DueSlices(0, 0)
        self._last = current
        missed = min(ended - 1, self._limit)
        return DueSlices(1, missed, ended - 1 - missed)
