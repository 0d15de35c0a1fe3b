"""Small parsers with the interface of the real one, and the events that the real one makes."""

import json
from collections.abc import Sequence

from mm2slo_logship.log_events import Line, ParsedEvent, Parser, ParserSettings


class JsonLineParser:
    """Each line is an event."""

    def feed(self, lines: Sequence[Line]) -> list[ParsedEvent]:
        return [self._event(line) for line in lines if line.text]

    def flush(self) -> list[ParsedEvent]:
        return []

    def _event(self, line: Line) -> ParsedEvent:
        try:
            fields = json.loads(line.text)
            return ParsedEvent(fields.pop("time", None), fields, line.start, line.end)
        except (ValueError, AttributeError):
            text = line.text.decode(errors="replace")
            return ParsedEvent(None, {"message": text, "parse_error": True}, line.start, line.end)


class BracketParser:
    """An event starts with a bracket and has all lines up to the next one."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def feed(self, lines: Sequence[Line]) -> list[ParsedEvent]:
        events = []
        for line in lines:
            if line.text.startswith(b"["):
                events += self.flush()
            self._lines.append(line)
        return events

    def flush(self) -> list[ParsedEvent]:
        lines, self._lines = self._lines, []
        if not lines:
            return []
        text = b"\n".join(line.text for line in lines).decode()
        return [ParsedEvent(None, {"message": text}, lines[0].start, lines[-1].end)]


def parse_log(text: bytes) -> list[ParsedEvent]:
    """The events of a whole log file."""
    parser, start, found = Parser(ParserSettings()), 0, []
    for each in text.splitlines(keepends=True):
        found.append(Line(start, start + len(each), each.rstrip(b"\n")))
        start += len(each)
    return [*parser.feed(found), *parser.flush()]
