"""The watermark timeline of one partition on one side (pure)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Poll(NamedTuple):
    """The first poll that saw *end*: its new records arrived within [earliest, latest], epoch ms.

    *earliest* None: there was no earlier poll.
    """

    end: int
    earliest: int | None
    latest: int


class TimedValue(NamedTuple):
    """A value from *at* (epoch s) until the next one."""

    at: float
    value: int


class PartitionTimeline:
    """Polls, log starts and positions of one partition, only where they change.

    A poll without a new end brackets no record and can be left out.
    """

    __slots__ = ("_polled_at", "_width", "polls", "positions", "starts")

    def __init__(self) -> None:
        self._width = 0
        self.polls: list[Poll] = []
        self.starts: list[TimedValue] = []
        self.positions: list[TimedValue] = []
        self._polled_at: float | None = None

    def add_poll(
        self, end: int, requested_at: float, answered_at: float, previous: float | None
    ) -> None:
        """Add the next poll, with the request time of the previous poll if known.

        It is unknown in a writer's first record, which counts from the record before it. A lower
        end is a truncation: polls of the offsets beyond it are dropped.
        """
        if self.polls and end < self.polls[-1].end:
            self.polls = [poll for poll in self.polls if poll.end <= end]
        if not self.polls or end > self.polls[-1].end:
            known = [at for at in (previous, self._polled_at) if at is not None]
            earliest = _milliseconds(max(known)) if known else None
            self._append(Poll(end, earliest, _milliseconds(answered_at)))
        self._polled_at = requested_at

    def join_polls(self, width: int) -> None:
        """Join neighbouring brackets, now and later, unless they become wider than *width* (ms)."""
        self._width = width
        polls, self.polls = self.polls, []
        for poll in polls:
            self._append(poll)

    def _append(self, poll: Poll) -> None:
        before = self.polls[-1].earliest if self.polls else None
        if before is not None and poll.latest - before <= self._width:
            self.polls.pop()
            poll = poll._replace(earliest=before)
        self.polls.append(poll)

    def add_start(self, at: float, log_start: int) -> None:
        _append_change(self.starts, at, log_start)

    def add_position(self, at: float, next_offset: int) -> None:
        """Add the first offset not known to be copied."""
        _append_change(self.positions, at, next_offset)


@lru_cache(maxsize=16)
def _milliseconds(at: float) -> int:
    """One object for all partitions of a poll: a third less memory."""
    return round(at * 1000)


def _append_change(figures: list[TimedValue], at: float, value: int) -> None:
    if not figures or figures[-1].value != value:
        figures.append(TimedValue(at, value))
