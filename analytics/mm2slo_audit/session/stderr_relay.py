"""What the JVM writes to standard error: kept while it starts, then passed on to our log."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import Final

logger = logging.getLogger("mm2slo.spark")
_KEPT: Final = 400


class StderrRelay:
    """The writing end of a pipe for a process, and a thread that reads it."""

    def __init__(self) -> None:
        reading, self.write_end = os.pipe()
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._starting = True
        self._thread = threading.Thread(
            target=self._read, args=(reading,), name="spark-errors", daemon=True
        )
        self._thread.start()

    def process_started(self) -> None:
        """Close our copy of the writing end: the process has its own."""
        os.close(self.write_end)

    def session_started(self) -> None:
        """From now on lines go to the log."""
        self._starting = False

    def ended(self, timeout: float = 5.0) -> tuple[str, ...]:
        """The last lines, after the process has ended."""
        self._thread.join(timeout)
        return tuple(self._lines)

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                text = line.rstrip()
                self._lines.append(text)
                if not self._starting and text:
                    logger.warning("%s", text)
