"""Log lines to redacted events: JSON lines, log4j text with stack traces, other text (pure).

`Parser` makes a log record of the lines in either form, and an event of it. In an event,
identifiers come first and the stack trace last: Splunk extracts fields from the first 5,000 bytes.
"""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from mm2slo_core.log_redaction import Redactor
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_logship.event_actions import classify

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
                record = record_from_document(document)
                events.append(self._event(record, line.start, line.end, len(text)))
            elif self._continues(text):
                self._append(line, suspect)
            elif text.strip():
                events += self.flush()
                self._start = line.start
                self._has_header = _HEADER_START.match(text) is not None
                self._append(line, suspect)
        return events

    def flush(self) -> list[ParsedEvent]:
        """Return the open event, to which no line follows."""
        if not self._texts:
            return []
        text = b"\n".join(self._texts).decode("utf-8", "replace")
        if self._is_suspect:
            text = self._redactor.redact(text)
        event = self._event(record_from_text(text), self._start, self._end, self._size)
        if not self._has_header and self._texts[0][:1] == b"{":
            event.fields["parse_error"] = True
        self._texts, self._size, self._has_header, self._is_suspect = [], 0, False, False
        return [event]

    def _continues(self, text: bytes) -> bool:
        if not self._texts or len(self._texts) >= _MOST_LINES or self._size >= _MOST_BYTES:
            return False
        if self._has_header:
            return _HEADER_START.match(text) is None
        return _CONTINUED.match(text) is not None

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


_MOST_THREADS: Final = 10_000


class ThreadFlows:
    """Remembers in which flow a thread of a worker works.

    MirrorMaker 2 runs the connectors of all flows in one process under the same names, but each
    flow has a worker of its own with its own threads, and Java does not reuse the id of a thread.
    A task names its flow when it starts; that is the flow of this thread until the process ends.
    """

    def __init__(self) -> None:
        self._flows: OrderedDict[tuple[str, str], str] = OrderedDict()

    def learn(self, worker_start: str, thread_id: str, flow: str) -> None:
        """Remember the flow of a thread; the oldest are forgotten."""
        self._flows[worker_start, thread_id] = flow
        self._flows.move_to_end((worker_start, thread_id))
        if len(self._flows) > _MOST_THREADS:
            self._flows.popitem(last=False)

    def flow(self, worker_start: str, thread_id: str) -> str:
        """Return the flow of a thread, or an empty string."""
        return self._flows.get((worker_start, thread_id), "")


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """Settings of the parsers of one process; all of them share `redactor` and `thread_flows`.

    `flow` is the flow of every line, for a worker with one flow; `flows` are the known flows, any
    if empty; `connector_flows` maps the connectors of a Connect cluster to their flows; `time_zone`
    is that of times without one, as log4j writes them.
    """

    service: str = "mm2-worker"
    env: str = ""
    flow: str = ""
    flows: frozenset[str] = frozenset()
    connector_flows: Mapping[str, str] = field(default_factory=dict)
    time_zone: tzinfo = UTC
    redactor: Redactor = field(default_factory=Redactor)
    thread_flows: ThreadFlows = field(default_factory=ThreadFlows)
    constants: Mapping[str, object] = field(init=False)
    """Fields that every event has."""

    def __post_init__(self) -> None:
        constants = {"service": self.service} | ({"env": self.env} if self.env else {})
        object.__setattr__(self, "constants", constants)


_KAFKA: Final = "org.apache.kafka."
_WORKER_THREADS: Final = ("task-thread-", "connector-thread-")
_NOT_SHIPPED: Final = "[trace message not shipped]"
_MESSAGE_LIMIT: Final = 8_192
_TRACE_LIMIT: Final = 32_768


def event_fields(
    record: LogRecord, settings: ParserSettings
) -> tuple[float | None, dict[str, object]]:
    """Return the time and the fields of a redacted record."""
    logger, thread, message = record.logger, record.thread, record.message
    time, timestamp = _read_time(record.timestamp, settings)
    fields: dict[str, object] = {} if not timestamp else {"timestamp": timestamp}
    level = record.level.upper()
    if level:
        fields["level"] = level
    fields |= settings.constants
    flow = record.flow or settings.flow
    if logger.startswith(_KAFKA):
        connector, task, scope = read_context(record.context, thread, message)
        _set_flow(fields, flow or _worker_flow(record, connector, settings))
        if connector:
            fields["connector"] = connector
            if task:
                fields["task"] = task
            fields["scope"] = scope
        action, details = classify(logger, message, has_error=bool(record.stack_trace))
        if action:
            fields["event_action"] = action
            fields |= details
        if level == "TRACE":  # may print whole records
            message = _NOT_SHIPPED
    elif flow:
        _set_flow(fields, flow)
    if logger:
        fields["logger"] = logger
    if thread:
        fields["thread"] = thread
    if record.rest:
        fields |= {name: value for name, value in record.rest.items() if value not in ("", None)}
    fields["message"] = message
    if record.stack_trace:
        fields |= _error_fields(record.stack_trace)
    return time, fields


def _set_flow(fields: dict[str, object], flow: str) -> None:
    fields["flow"] = flow
    source, arrow, target = flow.partition("->")
    if arrow:
        fields["source_cluster"], fields["target_cluster"] = source, target


def cut_long_texts(fields: dict[str, object]) -> None:
    """Cut texts to the limits, and mark the event."""
    for name, value in list(fields.items()):
        limit = _TRACE_LIMIT if name == "error.stack_trace" else _MESSAGE_LIMIT
        if isinstance(value, str) and len(value) > limit:
            fields[name] = value[:limit]
            fields["truncated"] = True


def _read_time(text: str, settings: ParserSettings) -> tuple[float | None, str]:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None, text
    if time.tzinfo is None:
        time = time.replace(tzinfo=settings.time_zone)
        text = time.isoformat()
    return time.timestamp(), text


def _worker_flow(record: LogRecord, connector: str, settings: ParserSettings) -> str:
    known = settings.connector_flows.get(connector)
    if known:
        return known
    shown = shown_flow(record.thread, record.message, settings)
    if record.thread_id and record.thread.startswith(_WORKER_THREADS):
        if shown:
            settings.thread_flows.learn(record.worker_start, record.thread_id, shown)
        else:
            shown = settings.thread_flows.flow(record.worker_start, record.thread_id)
    return shown or UNRESOLVED


_CACHED: Final = 400
"""Longest text in a cache; what identifies a line is at its start."""

UNRESOLVED: Final = "unresolved"
"""The flow of a worker's line that does not show it; never guessed from other lines."""

# LoggingContext.java; the value ends with a blank.
CONTEXT: Final = re.compile(
    r"\[(?P<connector>[^\]|]+)\|(?:(?P<worker>worker|validate)|task-(?P<task>\d+)"
    r"(?:\|(?P<offsets>offsets))?)\]"
)

_NAMED_TASK: Final = re.compile(
    r"(?:Worker(?:Source|Sink)Task\{id=|task-thread-|connector-producer-|\b[Tt]ask )"
    r"(?P<connector>[\w.-]+)-(?P<task>\d+)\b"
    r"|^Scheduler for (?P<scheduler>[\w.-]+): "
    r"|->[\w.-]+\|(?P<client>[^|\s]+?)(?:-(?P<client_task>\d+))?\|"
)
_ALIAS: Final = r"[\w.-]+"

# Clients of tasks and herders, clients of Connect's internal topics, threads, starting tasks.
_FLOW: Final = re.compile(
    rf"clientId=(?P<group>{_ALIAS})-mm2-(?P<internal>(?P=group)->{_ALIAS}?)"
    r"-(?:configs|offsets|statuses|shared-admin)\b"
    rf"|(?:^|[\s=|])(?P<client>{_ALIAS}->{_ALIAS})(?=\||, groupId=)"
    rf"|^(?:(?:Distributed|Mirror)Herder|(?:StartAndStop|ForwardRequest)Executor)-(?P<herder>{_ALIAS}?->{_ALIAS})-\d+$"
    rf"|(?:topic-partitions|consumer groups(?: for)?) (?P<start>{_ALIAS}->{_ALIAS}?)(?=: |\. )"
)


class WorkerContext(NamedTuple):
    """Connector, task number and scope (worker, task, offsets, validate); empty if unknown."""

    connector: str = ""
    task: str = ""
    scope: str = ""


NO_CONTEXT: Final = WorkerContext()


def read_context(context: str, thread: str, message: str) -> WorkerContext:
    """Read the context from Connect's MDC, or from the thread's name or the message."""
    if context:
        return _read_mdc(context[:_CACHED])
    named = _NAMED_TASK.search(thread) or _NAMED_TASK.search(message)
    if named is None:
        return NO_CONTEXT
    connector = named["connector"] or named["scheduler"] or named["client"]
    task = named["task"] or named["client_task"]
    return WorkerContext(connector, task or "", "task" if task else "worker")


@lru_cache(maxsize=1024)
def _read_mdc(context: str) -> WorkerContext:
    found = CONTEXT.match(context)
    if found is None:
        return NO_CONTEXT
    scope = found["worker"] or found["offsets"] or "task"
    return WorkerContext(found["connector"], found["task"] or "", scope)


def shown_flow(thread: str, message: str, settings: ParserSettings) -> str:
    """Return the flow that the line itself shows, or an empty string."""
    for text in (message, thread):
        if "->" in text:
            # Clients put their id in brackets first, the same in all their messages.
            flow = _find_flow(text[: text.find("]") + 1 if text[0] == "[" else _CACHED])
            if flow and (not settings.flows or flow in settings.flows):
                return flow
    return ""


@lru_cache(maxsize=4096)
def _find_flow(text: str) -> str:
    found = _FLOW.search(text)
    return "" if found is None else found[found.lastgroup or 0]


_DEDICATED: Final = frozenset[str](ConnectorKind)
"""Names in dedicated mode, where they are the same for all flows."""


def connector_flows(connectors: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the flow of each connector from (connector, flow), without ambiguous names."""
    flows: dict[str, set[str]] = defaultdict(set)
    for connector, flow in connectors:
        flows[connector].add(flow)
    return {
        connector: min(found)
        for connector, found in flows.items()
        if len(found) == 1 and connector not in _DEDICATED
    }


_HEADER: Final = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3,9}(?:Z|[+-]\d\d:?\d\d)?)\] "
    r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +"
    r"(?:<(?P<thread>.*?)> )?(?P<context>\[[^\]|\n]+\|[^\]\n]+\] )?"
)

# The start of a record; all other lines continue it.
_HEADER_START: Final = re.compile(
    rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3,9}\S*\] [A-Z]{4,5} "
)
_LOGGER: Final = re.compile(r" \((?P<logger>[\w$]+(?:\.[\w$]+)+)(?::(?:\d+|\?))?\)$", re.MULTILINE)


class LogRecord(NamedTuple):
    """Texts are empty if unknown; `rest` are the other fields of a JSON document."""

    timestamp: str = ""
    level: str = ""
    flow: str = ""
    context: str = ""
    logger: str = ""
    thread: str = ""
    thread_id: str = ""
    worker_start: str = ""
    message: str = ""
    stack_trace: str = ""
    rest: Mapping[str, object] = MappingProxyType({})


_KEY_NAMES: Final = (*LogRecord._fields[:-2], "error.stack_trace")
_TAKE_ALL_KEYS: Final = itemgetter(*_KEY_NAMES)
_KEYS_READ: Final = frozenset((*_KEY_NAMES, "time", "@timestamp", "exception"))
_TEXTS: Final = {str}


def record_from_document(document: dict[str, object]) -> LogRecord:
    """Read a JSON line of a worker with deploy/logging's pattern, or of this project's programs."""
    values: Any
    try:
        values, rest = _TAKE_ALL_KEYS(document), document
        if len(document) == len(_KEY_NAMES):
            rest = {}
    except KeyError:
        values, rest = [document.get(name, "") for name in _KEY_NAMES], document
    if set(map(type, values)) != _TEXTS:
        values = [_text(value) for value in values]
    if not rest:
        return LogRecord._make((*values, rest))
    others = {name: value for name, value in rest.items() if name not in _KEYS_READ}
    record = LogRecord._make((*values, others))
    return record._replace(
        timestamp=record.timestamp or _text(rest.get("time", rest.get("@timestamp"))),
        stack_trace=record.stack_trace or _text(rest.get("exception")),
    )


def record_from_text(text: str) -> LogRecord:
    """Read a record of Kafka's own log4j pattern, of the one in deploy/logging, or other text.

    The logger ends the message; what follows is the stack trace.
    """
    header = _HEADER.match(text)
    if header is None:
        message, line_end, trace = text.partition("\n")
        return LogRecord(message=message, stack_trace=trace if line_end else "")
    body = text[header.end() :]
    found = _LOGGER.search(body)
    return LogRecord(
        timestamp=header["time"],
        level=header["level"],
        thread=header["thread"] or "",
        context=header["context"] or "",
        logger=found["logger"] if found else "",
        message=body[: found.start()] if found else body,
        stack_trace=body[found.end() + 1 :] if found else "",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


_TYPE: Final = r"(?P<type>[a-zA-Z_$][\w$]*(?:\.[\w$]+)+)"

_FIRST: Final = re.compile(
    rf"^(?:Exception in thread \"[^\"\n]*\" )?{_TYPE}(?:: (?P<message>.*))?$", re.MULTILINE
)
_CAUSE: Final = re.compile(rf"^Caused by: {_TYPE}(?:: (?P<message>.*))?$", re.MULTILINE)

_PYTHON: Final = re.compile(
    r"^(?P<type>[A-Za-z_]\w*(?:\.\w+)*)(?:: (?P<message>.*))?\s*\Z", re.MULTILINE
)
# A line that continues an event without a header, as frames of a trace do.
_CONTINUED: Final = re.compile(rb"[ \t]|Caused by: |Suppressed: |at [\w.$]+\(")


def _error_fields(trace: str) -> dict[str, object]:
    """Type and message of the exception, and of its last cause, and the trace itself.

    Java's traces start with the exception; Python's end with it.
    """
    fields: dict[str, object] = {}
    is_python = trace.startswith("Traceback ")
    if error := _PYTHON.search(trace) if is_python else _FIRST.match(trace):
        fields |= {"error.type": error["type"], "error.message": error["message"] or ""}
        if causes := [] if is_python else _CAUSE.findall(trace):
            fields["error.cause.type"], fields["error.cause.message"] = causes[-1]
    return fields | {"error.stack_trace": trace.rstrip()}
