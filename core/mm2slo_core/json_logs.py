"""The log format of all mm2slo programs: one JSON object per line.

Fields: `time` (ISO 8601, UTC), `level`, `logger`, `message`, and those of `EXTRAS` that the call
passes.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final

EXTRAS: Final = ("flow", "cluster", "stage", "reason", "run", "topic", "records", "seconds")


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: record.__dict__[name] for name in EXTRAS if name in record.__dict__}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
