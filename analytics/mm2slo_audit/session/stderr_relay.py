"""Relays the JVM's standard error to the log, and keeps its last lines for error messages."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import Final

logger = logging.getLogger("mm2slo.spark")
_KEPT: Final = 400


class StderrRelay:
    """A pipe for a process, and a thread that reads it."""

    def __init__(self) -> None:
        reading, self.write_end = os.pipe()
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._starting = True
        self._thread = threading.Thread(
            target=self._read, args=(reading,), name="spark-errors", daemon=True
        )
        self._thread.start()

    def process_started(self) -> None:
        """Close this process's copy of the write end."""
        os.close(self.write_end)

    def session_started(self) -> None:
        """Log lines from now on."""
        self._starting = False

    def last_lines(self, timeout: float = 5.0) -> tuple[str, ...]:
        """The last lines of the process, which has ended."""
        self._thread.join(timeout)
        return tuple(self._lines)

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                text = line.rstrip()
                self._lines.append(text)
                if not self._starting and text:
                    logger.warning("%s", text)
