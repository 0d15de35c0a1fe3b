"""Reads a slow history in advance; until it is complete, queries fail with the progress."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol, Self

from mm2slo_report.sources.sli_source import SliSource, SliSourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.minute_counts import Indicator, MinuteCounts, SpanCounts

logger = logging.getLogger(__name__)

_DAY: Final = 86_400
_RETRY_SECONDS: Final = 15.0
"""Seconds until a failed read is retried."""
_STOP_TIMEOUT: Final = 5.0


class Progress(Protocol):
    """Progress of reading a history, in seconds."""

    @property
    def done(self) -> float:
        """Seconds read."""

    @property
    def whole(self) -> float:
        """Seconds to read."""


class SlowSource(SliSource, Protocol):
    """A source whose first read takes long."""

    def read_ahead(self, seconds: float) -> None:
        """Read the last *seconds*. Raises SliSourceError, but keeps what was read."""

    @property
    def progress(self) -> Progress | None:
        """The progress, without waiting; None: not reading."""


class ReadAhead:
    """A SliSource that reads the last *seconds* of *source* while this context manager is active.

    Until that is complete, queries fail at once.
    """

    def __init__(
        self, source: SlowSource, seconds: float, *, retry_after: float = _RETRY_SECONDS
    ) -> None:
        """*retry_after*: seconds until a failed read is retried."""
        self._source = source
        self._seconds = seconds
        self._retry_after = retry_after
        self._failed = ""
        self._done = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mm2slo-read-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(_STOP_TIMEOUT)

    @property
    def name(self) -> str:
        """The source's name."""
        return self._source.name

    def wait(self, seconds: float) -> bool:
        """Wait at most *seconds*; whether reading is complete."""
        return self._done.wait(seconds)

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """See the port; the same error for each indicator until reading is complete."""
        if self._done.is_set():
            return self._source.counts(indicators, spans)
        return dict.fromkeys(indicators, self._error())

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """See the port."""
        self._raise_if_unread()
        return self._source.minutes(indicator, span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """See the port; None until reading is complete."""
        if self._done.is_set():
            return self._source.known_since(indicators)
        return dict.fromkeys(indicators)

    def indicators(self) -> Sequence[Indicator]:
        """See the port."""
        self._raise_if_unread()
        return self._source.indicators()

    def warnings(self, window: float) -> Sequence[str]:
        """See the port; a note about the progress until reading is complete."""
        if self._done.is_set():
            return self._source.warnings(window)
        return (str(self._error()),)

    def _raise_if_unread(self) -> None:
        if not self._done.is_set():
            raise self._error()

    def _error(self) -> SliSourceError:
        progress = self._source.progress
        if progress is None and self._failed:
            return SliSourceError(f"the history could not be read: {self._failed}")
        far = "" if progress is None else f": {_days(progress)} so far"
        return SliSourceError(f"the history is being read from {self.name}{far}", slow=True)

    def _run(self) -> None:
        started = time.monotonic()
        while not self._stopping.is_set():
            try:
                self._source.read_ahead(self._seconds)
            except SliSourceError as problem:
                if str(problem) != self._failed:
                    logger.warning("the history could not be read: %s", problem)
                self._failed = str(problem)
            except Exception:  # a failed read must be retried
                logger.exception("reading the history failed unexpectedly")
                self._failed = "unexpected error, see the log"
            else:
                self._done.set()
                logger.info("the history was read in %.1f s", time.monotonic() - started)
                return
            self._stopping.wait(self._retry_after)


def _days(progress: Progress) -> str:
    return f"{progress.done / _DAY:.0f} of {progress.whole / _DAY:.0f} days"
