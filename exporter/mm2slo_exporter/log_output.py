"""Log output on standard output, as JSON or text lines."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from mm2slo_core.log_redaction import JsonFormatter, TextFormatter

if TYPE_CHECKING:
    from mm2slo_core.config.exporter_settings import LogSettings


def configure_logging(config: LogSettings, service: str = "repl-exporter") -> None:
    """Send all log records of this process to standard output; *service* is a field in JSON."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter(service) if config.format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.level.upper())
