"""The log format of all mm2slo programs: one JSON object per line.

The fields are those of events in Splunk (docs/splunk.md): `timestamp` (RFC 3339, UTC), `level`,
`service`, those of `EXTRAS` that the call passes, `logger`, `message` and, for an exception,
`error.type`, `error.message` and `error.stack_trace`, without local variables. Secrets are
redacted in all of them.
"""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from mm2slo_core.redaction import Redactor

EXTRAS: Final = (
    "flow", "cluster", "topic", "partition", "group", "stage", "reason", "records", "seconds",
    "run_id", "request_id", "event_action",
)  # fmt: skip

REQUEST_ID: Final[ContextVar[str]] = ContextVar("request_id")
"""The id of the HTTP request that is answered, for all log lines of its context."""


_REDACTOR: Final = Redactor()


class TextFormatter(logging.Formatter):
    """Lines for a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return _REDACTOR.redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per record; *service* names the program."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        line: dict[str, object] = {
            "timestamp": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "service": self._service,
        }
        line |= {name: record.__dict__[name] for name in EXTRAS if name in record.__dict__}
        if (request_id := REQUEST_ID.get(None)) is not None:
            line["request_id"] = request_id
        line |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line |= {"error.type": type(error).__qualname__, "error.message": str(error)}
            line["error.stack_trace"] = self.formatException(record.exc_info)
        return json.dumps(_REDACTOR.redact_document(line), ensure_ascii=False)
