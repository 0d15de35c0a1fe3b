"""The thread that runs the recorder at fixed intervals."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_report.recording.recorder import Recorder

logger = logging.getLogger(__name__)

INTERVAL: Final = 15.0
_STOP_TIMEOUT: Final = 5.0
"""Seconds to wait for the interrupted scrape round and the store."""


class RecordingThread:
    """Records while this context manager is active. *clock* returns epoch ms."""

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
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop recording, after storing the current step."""
        self._stopping.set()
        self._recorder.end()
        self._thread.join(_STOP_TIMEOUT)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._recorder.run_once()
            except Exception:  # a failed round must not end the thread
                logger.exception("a recording round failed unexpectedly")
            # At multiples of the interval, so that a step that ended is stored at once.
            left = self._interval_ms - self._clock() % self._interval_ms
            self._stopping.wait(left / 1000)
        self._recorder.close()
