"""The exporter's log: one JSON object, or one text, per line on standard output.

Fields of a JSON line: `time` (ISO 8601, UTC), `level`, `logger`, `message`, and whatever the call
adds (`flow`, `cluster`, `stage`, `reason`). Splunk and others join them by these names.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mm2slo_core.config.exporter import LogConfig

_EXTRAS: Final = ("flow", "cluster", "stage", "reason")


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """Render *record*."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: record.__dict__[name] for name in _EXTRAS if name in record.__dict__}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up(config: LogConfig) -> None:
    """Send every log record of this process to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    if config.format.value == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.level.value.upper())
