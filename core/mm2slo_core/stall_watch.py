"""Stall detection: a partition with a backlog whose position does not advance.

And what looks like a stall: records at the end of a partition that a transform has dropped.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


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


_COMMITS: Final = 2
_SPACING: Final = 0.9
"""Of the commit interval: tasks commit at different times, which must not count as two."""


class TaskCommits(NamedTuple):
    """Times of the newest commits of offsets; None before the first."""

    own: float | None
    """Of the task of a partition."""
    any: float | None
    """Of all tasks of the connector."""


class DroppedTail:
    """Whether a transform has dropped the records between a position and the partition's end.

    Connect commits a dropped record only with a later one that it keeps, so dropped records at the
    end stay uncommitted. The evidence is that the connector commits other offsets twice, while here
    nothing arrives and nothing is replicated. If more records arrive later, only commits of the
    partition's own task count: a task that hangs commits nothing.
    """

    __slots__ = ("_commits", "_counts", "_end", "_grown_at", "_next_offset", "_since")

    def __init__(self) -> None:
        self._next_offset: int | None = None
        self._end: int | None = None
        self._since = self._grown_at = 0.0
        self._commits: list[float | None] = []
        self._counts = [0, 0]

    def observe(
        self,
        at: float,
        next_offset: int,
        end: int,
        commits: TaskCommits,
        *,
        stall_after: float,
        commit_interval: float,
    ) -> bool:
        """Add a sample with a backlog; True if all of it was dropped."""
        if next_offset != self._next_offset or (end != self._end and self._counts[0] >= _COMMITS):
            self._since = at
        if (next_offset, end) != (self._next_offset, self._end):
            self._next_offset, self._end, self._grown_at = next_offset, end, at
            self._commits, self._counts = list(commits), [0, 0]
        for index, committed_at in enumerate(commits):
            before = self._commits[index] or 0.0
            if committed_at is not None and committed_at - before >= _SPACING * commit_interval:
                self._commits[index] = committed_at
                self._counts[index] += 1
        own, of_any = (count >= _COMMITS for count in self._counts)
        return own or (of_any and self._grown_at - self._since < stall_after)

    def is_undecided(self, at: float, stall_after: float, commit_interval: float) -> bool:
        """Whether the backlog rests for *stall_after*, and commits may show that it was dropped.

        Not if records arrived for *stall_after* without progress, or commits do not come.
        """
        rested = at - self._grown_at
        is_waiting = stall_after <= rested < stall_after + _COMMITS * commit_interval
        return is_waiting and self._grown_at - self._since < stall_after
