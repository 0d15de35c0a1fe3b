"""Stall detection: a partition with a backlog whose position does not advance."""

from __future__ import annotations

from enum import StrEnum


class Progress(StrEnum):
    """The replication progress of a partition."""

    MOVING = "moving"
    """A backlog exists, and the position advanced within the stall time."""
    IDLE = "idle"
    """No backlog."""
    STALLED = "stalled"
    """A backlog exists, and the position has not advanced for the stall time."""
    UNKNOWN = "unknown"
    """The lag is unknown."""


class StallWatch:
    """Tracks the progress of one partition over successive samples.

    A stall is timed from the start of the backlog or the last change of the position, whichever is
    later. Missing samples neither start nor stop it: a position that is the same before and after
    a gap did not advance in between.
    """

    __slots__ = ("_next_offset", "_progress_at", "_unchanged_since")

    def __init__(self) -> None:
        self._next_offset: int | None = None
        self._unchanged_since: float | None = None
        self._progress_at: float | None = None

    @property
    def progress_at(self) -> float | None:
        """Time of the last advance of the position, or of the last sample without backlog."""
        return self._progress_at

    @property
    def backlog_since(self) -> float | None:
        """Time since which a backlog exists and the position has not changed; None without one."""
        return self._unchanged_since

    def observe(
        self,
        at: float,
        lag_records: int | None,
        next_offset: int | None,
        stall_after: float,
        position_period: float = 0.0,
    ) -> Progress:
        """Add the sample of time *at*.

        *position_period* is the longest time between updates of a healthy position: 0 for a live
        one, MM2's flush interval if only committed offsets are known.
        """
        if lag_records is None or next_offset is None:
            return Progress.UNKNOWN
        before, self._next_offset = self._next_offset, next_offset
        if lag_records == 0:
            self._progress_at, self._unchanged_since = at, None
            return Progress.IDLE
        if before is not None and next_offset > before:
            self._progress_at = at
        if before != next_offset or self._unchanged_since is None:
            self._unchanged_since = at
        unchanged_for = at - self._unchanged_since
        is_stalled = unchanged_for >= stall_after + position_period
        return Progress.STALLED if is_stalled else Progress.MOVING
