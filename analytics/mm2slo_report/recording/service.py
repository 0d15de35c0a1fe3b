"""The thread that records, at even times, until it is told to end."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Self

from mm2slo_core.reporting.history import MINUTE_MS, whole_minute

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_report.recording.recorder import Recorder

logger = logging.getLogger(__name__)

INTERVAL: Final = 15.0
_PATIENCE: Final = 5.0
"""Seconds to wait for the end of a running round, which is cut short, and of the store's work."""


def next_wake(now: int, interval_ms: int) -> int:
    """The next multiple of *interval_ms*, or the next minute if that comes first (epoch ms).

    A minute is stored as it ends, so that a report never sees it change.
    """
    return min(now - now % interval_ms + interval_ms, whole_minute(now) + MINUTE_MS)


class RecordingThread:
    """Records while it is entered. *clock* gives epoch ms."""

    def __init__(
        self, recorder: Recorder, clock: Callable[[], int], *, interval: float = INTERVAL
    ) -> None:
        """*interval*: seconds between two scrapes."""
        self._recorder = recorder
        self._clock = clock
        self._interval_ms = max(1, round(interval * 1000))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mm2slo-recorder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether it still records."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End; waits for what is being stored."""
        self._stopping.set()
        self._recorder.end()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        scraped: int | None = None
        while not self._stopping.is_set():
            try:
                self._recorder.tend()
                tick = self._clock() // self._interval_ms
                if tick != scraped:
                    scraped = tick
                    self._recorder.run_once()
            except Exception:  # one bad round must not be the last
                logger.exception("a round of recording failed in an unforeseen way")
            now = self._clock()
            self._stopping.wait((next_wake(now, self._interval_ms) - now) / 1000)
        self._recorder.close()
