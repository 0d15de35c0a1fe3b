"""One stream of a log file: its parser, and the lines that have no event yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_logship.events.parsed_event import Line, ParsedEvent
    from mm2slo_logship.files.source import EventParser

IDLE: Final = 2.0
"""Seconds without a new line after which an event of several lines is complete."""


class EventStream:
    def __init__(self, parser: EventParser) -> None:
        self._parser = parser
        self._fed_at = 0.0
        self.open_start: int | None = None  # of the first line without an event

    def feed(self, lines: Sequence[Line], now: float) -> list[ParsedEvent]:
        self._fed_at = now
        events = self._parser.feed(lines)
        if events:
            self.open_start = None
        done = events[-1].end if events else -1
        if self.open_start is None and lines[-1].start >= done:
            self.open_start = next(line.start for line in lines if line.start >= done)
        return events

    def flush(self, now: float, *, final: bool) -> list[ParsedEvent]:
        """The open event if no line followed for a while, or none will with *final*."""
        if self.open_start is None or not (final or now - self._fed_at >= IDLE):
            return []
        self.open_start = None
        return self._parser.flush()
