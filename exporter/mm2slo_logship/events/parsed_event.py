"""Lines of a log file and the events that they form."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """A complete line without its line end."""

    start: int  # byte offset of its first byte
    end: int  # byte offset after its line end
    text: bytes


class ParsedEvent(NamedTuple):
    """An event of one or more lines, already redacted."""

    time: float | None  # Unix seconds; None if the lines have no time
    fields: dict[str, object]  # the `event` object of the envelope
    start: int  # byte offset of its first line
    end: int  # byte offset after its last line
