"""Does a partition move? A backlog whose position stands still for long is a stall."""

from __future__ import annotations

from enum import StrEnum


class Progress(StrEnum):
    """What a partition's replication does."""

    MOVING = "moving"
    """Something waits, and the position advanced lately or there was no time to advance yet."""
    IDLE = "idle"
    """Nothing waits."""
    STALLED = "stalled"
    """Something waits, and the position has stood still for too long."""
    UNKNOWN = "unknown"
    """The lag cannot be told."""


class StallWatch:
    """Progress of one partition over successive samples.

    The clock of a stall starts when records start to wait or the position last changed, whichever
    came later. Samples that could not be taken neither start nor stop it: a backlog and a position
    that are the same before and after a gap did stand still in between.
    """

    __slots__ = ("_next_offset", "_progress_at", "_waits_since")

    def __init__(self) -> None:
        self._next_offset: int | None = None
        self._waits_since: float | None = None
        self._progress_at: float | None = None

    @property
    def progress_at(self) -> float | None:
        """When the position last advanced or nothing waited; None while neither was seen."""
        return self._progress_at

    @property
    def backlog_since(self) -> float | None:
        """Since when something waits and the position has not moved; None while nothing waits."""
        return self._waits_since

    def observe(
        self,
        at: float,
        lag_records: int | None,
        next_offset: int | None,
        stall_after: float,
        position_period: float = 0.0,
    ) -> Progress:
        """Judge the sample of moment *at*.

        *position_period* is the longest time in which a healthy position seems to stand still: 0
        for a live one, MM2's flush interval where only committed offsets are known.
        """
        if lag_records is None or next_offset is None:
            return Progress.UNKNOWN
        before, self._next_offset = self._next_offset, next_offset
        if lag_records == 0:
            self._progress_at, self._waits_since = at, None
            return Progress.IDLE
        if before is not None and next_offset > before:
            self._progress_at = at
        if before != next_offset or self._waits_since is None:
            self._waits_since = at
        stood_still = at - self._waits_since
        return Progress.STALLED if stood_still >= stall_after + position_period else Progress.MOVING
