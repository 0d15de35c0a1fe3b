"""What the watermark timeline tells of one partition of one side (pure)."""

from __future__ import annotations

from typing import NamedTuple


class Poll(NamedTuple):
    """The first poll that saw *end*: what it added arrived within [earliest, latest], epoch ms.

    *earliest* None: no poll preceded.
    """

    end: int
    earliest: int | None
    latest: int


class Figure(NamedTuple):
    """A figure from moment *at* (epoch s) on, until the next one."""

    at: float
    value: int


class PartitionTimeline:
    """Polls, log starts and positions of one partition; each is kept where it changes.

    A poll that saw no new end brackets no record: leaving it out changes no bracket.
    """

    __slots__ = ("_polled_at", "polls", "positions", "starts")

    def __init__(self) -> None:
        self.polls: list[Poll] = []
        self.starts: list[Figure] = []
        self.positions: list[Figure] = []
        self._polled_at: float | None = None

    def add_poll(
        self, end: int, requested_at: float, answered_at: float, previous: float | None
    ) -> None:
        """Take the next poll, with the request time of the poll before it, if it names one.

        A writer's first record names none: what it tells is as old as the record before it. A
        smaller end is a truncation, and what was known of the offsets beyond it is void.
        """
        if self.polls and end < self.polls[-1].end:
            self.polls = [poll for poll in self.polls if poll.end <= end]
        if not self.polls or end > self.polls[-1].end:
            known = [at for at in (previous, self._polled_at) if at is not None]
            earliest = round(max(known) * 1000) if known else None
            self.polls.append(Poll(end, earliest, round(answered_at * 1000)))
        self._polled_at = requested_at

    def add_start(self, at: float, log_start: int) -> None:
        """Take the log start of a poll."""
        _note(self.starts, at, log_start)

    def add_position(self, at: float, next_offset: int) -> None:
        """Take the first offset that was not known to be copied then."""
        _note(self.positions, at, next_offset)


def _note(figures: list[Figure], at: float, value: int) -> None:
    if not figures or figures[-1].value != value:
        figures.append(Figure(at, value))
