"""Log lines to redacted events: JSON lines, log4j text with stack traces, other text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from mm2slo_logship.events.event_fields import cut_long_texts, event_fields
from mm2slo_logship.events.log_record import from_document, from_text, is_header
from mm2slo_logship.events.parsed_event import ParsedEvent
from mm2slo_logship.events.stack_trace import is_continuation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_logship.events.log_record import LogRecord
    from mm2slo_logship.events.parsed_event import Line
    from mm2slo_logship.events.parser_settings import ParserSettings

_MOST_LINES: Final = 1_000
_MOST_BYTES: Final = 262_144
_MOST_LEVELS: Final = 32
_SHORT: Final = 8_192
"""A line without a text that `cut_long_texts` could cut."""


class Parser:
    """Parses one file or stream; no line is dropped but blank ones."""

    def __init__(self, settings: ParserSettings) -> None:
        self._settings = settings
        self._redactor = settings.redactor
        # Lines of an event of text that may continue.
        self._texts: list[bytes] = []
        self._start = self._end = self._size = 0
        self._has_header = self._is_suspect = False

    def feed(self, lines: Sequence[Line]) -> list[ParsedEvent]:
        """Return the events that are complete."""
        events: list[ParsedEvent] = []
        suspects = self._redactor.suspects([line.text for line in lines])
        for index, line in enumerate(lines):
            text = line.text
            suspect = index in suspects
            document = _read_json(text) if text[:1] == b"{" else None
            if document is not None and not (self._has_header and _is_contents(document)):
                events += self.flush()
                if suspect:
                    document = self._redactor.redact_document(document)
                record = from_document(document)
                events.append(self._event(record, line.start, line.end, len(text)))
            elif self._continues(text):
                self._append(line, suspect)
            elif text.strip():
                events += self.flush()
                self._start, self._has_header = line.start, is_header(text)
                self._append(line, suspect)
        return events

    def flush(self) -> list[ParsedEvent]:
        """Return the open event, to which no line follows."""
        if not self._texts:
            return []
        text = b"\n".join(self._texts).decode("utf-8", "replace")
        if self._is_suspect:
            text = self._redactor.redact(text)
        event = self._event(from_text(text), self._start, self._end, self._size)
        if not self._has_header and self._texts[0][:1] == b"{":
            event.fields["parse_error"] = True
        self._texts, self._size, self._has_header, self._is_suspect = [], 0, False, False
        return [event]

    def _continues(self, text: bytes) -> bool:
        if not self._texts or len(self._texts) >= _MOST_LINES or self._size >= _MOST_BYTES:
            return False
        return not is_header(text) if self._has_header else is_continuation(text)

    def _append(self, line: Line, suspect: bool) -> None:
        self._texts.append(line.text)
        self._end = line.end
        self._size += len(line.text) + 1
        self._is_suspect |= suspect

    def _event(self, record: LogRecord, start: int, end: int, size: int) -> ParsedEvent:
        time, fields = event_fields(record, self._settings)
        if size > _SHORT:
            cut_long_texts(fields)
        return ParsedEvent(time, fields, start, end)


def _read_json(text: bytes) -> dict[str, object] | None:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            document = orjson.loads(text.decode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            return None
    if not isinstance(document, dict) or _is_too_deep(text, document):
        return None
    return document


def _is_too_deep(text: bytes, document: dict[str, object]) -> bool:
    """Whether a document is nested so deeply that encoding it could fail."""
    if text.count(b"{") + text.count(b"[") <= _MOST_LEVELS:
        return False
    level: list[Any] = [document]
    for _ in range(_MOST_LEVELS):
        nested = (each.values() if isinstance(each, dict) else each for each in level)
        level = [value for values in nested for value in values if isinstance(value, dict | list)]
    return bool(level)


def _is_contents(document: dict[str, object]) -> bool:
    """Whether a JSON object is a part of a message rather than a record of its own."""
    return "message" not in document or not document.keys() & {"timestamp", "time", "@timestamp"}
