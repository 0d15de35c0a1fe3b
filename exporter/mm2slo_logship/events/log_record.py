"""A log record in either form, before it becomes an event (pure)."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Any, Final, NamedTuple

_HEADER: Final = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3,9}(?:Z|[+-]\d\d:?\d\d)?)\] "
    r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +"
    r"(?:<(?P<thread>.*?)> )?(?P<context>\[[^\]|\n]+\|[^\]\n]+\] )?"
)
_HEADER_START: Final = re.compile(
    rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3,9}\S*\] [A-Z]{4,5} "
)
_LOGGER: Final = re.compile(r" \((?P<logger>[\w$]+(?:\.[\w$]+)+)(?::(?:\d+|\?))?\)$", re.MULTILINE)


_NAMES: Final = (
    "timestamp",
    "level",
    "flow",
    "context",
    "logger",
    "thread",
    "thread_id",
    "worker_start",
    "message",
    "error.stack_trace",
)

_ALL: Final = itemgetter(*_NAMES)
_READ: Final = frozenset((*_NAMES, "time", "@timestamp", "exception"))
_TEXTS: Final = {str}


class LogRecord(NamedTuple):
    """Texts are empty if unknown; `rest` are the other fields of a JSON document."""

    timestamp: str
    level: str
    flow: str
    context: str
    logger: str
    thread: str
    thread_id: str
    worker_start: str
    message: str
    stack_trace: str
    rest: dict[str, object]


def from_document(document: dict[str, object]) -> LogRecord:
    """Read a JSON line of a worker with deploy/logging's pattern, or of this project's programs."""
    values: Any
    try:
        values, rest = _ALL(document), document
        if len(document) == len(_NAMES):
            rest = {}
    except KeyError:
        values, rest = [document.get(name, "") for name in _NAMES], document
    if set(map(type, values)) != _TEXTS:
        values = [_text(value) for value in values]
    if not rest:
        return LogRecord._make((*values, rest))
    others = {name: value for name, value in rest.items() if name not in _READ}
    record = LogRecord._make((*values, others))
    return record._replace(
        timestamp=record.timestamp or _text(rest.get("time", rest.get("@timestamp"))),
        stack_trace=record.stack_trace or _text(rest.get("exception")),
    )


def is_header(line: bytes) -> bool:
    """Whether a line of text starts a record of log4j's pattern."""
    return _HEADER_START.match(line) is not None


def from_text(text: str) -> LogRecord:
    """Read a record of Kafka's own log4j pattern, of the one in deploy/logging, or other text.

    The logger ends the message; what follows is the stack trace.
    """
    header = _HEADER.match(text)
    if header is None:
        message, line_end, trace = text.partition("\n")
        return _text_record(message=message, stack_trace=trace if line_end else "")
    body = text[header.end() :]
    found = _LOGGER.search(body)
    return _text_record(
        timestamp=header["time"],
        level=header["level"],
        thread=header["thread"] or "",
        context=header["context"] or "",
        logger=found["logger"] if found else "",
        message=body[: found.start()] if found else body,
        stack_trace=body[found.end() + 1 :] if found else "",
    )


def _text_record(
    *,
    timestamp: str = "",
    level: str = "",
    context: str = "",
    logger: str = "",
    thread: str = "",
    message: str,
    stack_trace: str,
) -> LogRecord:
    return LogRecord(
        timestamp, level, "", context, logger, thread, "", "", message, stack_trace, {}
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
