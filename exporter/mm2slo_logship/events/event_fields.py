"""The fields of an event from a log record.

Identifiers come first and the stack trace last: Splunk extracts fields from the first 5,000 bytes.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from mm2slo_logship.events.event_actions import classify
from mm2slo_logship.events.stack_trace import summarise
from mm2slo_logship.events.worker_context import UNRESOLVED, read_context, shown_flow

if TYPE_CHECKING:
    from mm2slo_logship.events.log_record import LogRecord
    from mm2slo_logship.events.parser_settings import ParserSettings

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
        _set_error(fields, record.stack_trace)
    return time, fields


def _set_flow(fields: dict[str, object], flow: str) -> None:
    fields["flow"] = flow
    source, arrow, target = flow.partition("->")
    if arrow:
        fields["source_cluster"], fields["target_cluster"] = source, target


def _set_error(fields: dict[str, object], trace: str) -> None:
    error = summarise(trace)
    if error.error_type:
        fields["error.type"], fields["error.message"] = error.error_type, error.error_message
    if error.cause_type:
        fields["error.cause.type"] = error.cause_type
        fields["error.cause.message"] = error.cause_message
    fields["error.stack_trace"] = trace.rstrip()


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
