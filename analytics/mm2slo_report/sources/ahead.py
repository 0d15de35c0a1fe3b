"""A history that is read before anybody asks; meanwhile every answer tells how far that is."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol, Self

from mm2slo_report.sources.port import SliSource, SliSourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.history import Indicator, MinuteCounts, SpanCounts

logger = logging.getLogger(__name__)

_DAY: Final = 86_400
_AGAIN: Final = 15.0
"""Seconds until a history that could not be read is read again."""
_PATIENCE: Final = 5.0


class Progress(Protocol):
    """How far a history is read; both in seconds."""

    @property
    def done(self) -> float:
        """What is read."""

    @property
    def whole(self) -> float:
        """What there is to read."""


class SlowSource(SliSource, Protocol):
    """A source whose first look at the past takes long."""

    def read_ahead(self, seconds: float) -> None:
        """Look at the last *seconds*. Raises SliSourceError; what was read until then is kept."""

    @property
    def progress(self) -> Progress | None:
        """How far that is, without waiting for it."""


class ReadAhead:
    """A SliSource that reads the last *seconds* of *source* while it is entered.

    Until that is done it answers no question with a figure, and lets nobody wait.
    """

    def __init__(self, source: SlowSource, seconds: float, *, again: float = _AGAIN) -> None:
        """*again*: seconds to wait after a reading that failed."""
        self._source = source
        self._seconds = seconds
        self._again = again
        self._failed = ""
        self._done = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mm2slo-read-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(_PATIENCE)

    @property
    def name(self) -> str:
        """That of the source."""
        return self._source.name

    def wait(self, seconds: float) -> bool:
        """Whether everything is read, at most that many seconds from now."""
        return self._done.wait(seconds)

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """As the port says; of each indicator the same problem until everything is read."""
        if self._done.is_set():
            return self._source.counts(indicators, spans)
        return dict.fromkeys(indicators, self._problem())

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """As the port says."""
        self._refuse()
        return self._source.minutes(indicator, span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """As the port says; nothing is known until everything is read."""
        if self._done.is_set():
            return self._source.known_since(indicators)
        return dict.fromkeys(indicators)

    def indicators(self) -> Sequence[Indicator]:
        """As the port says."""
        self._refuse()
        return self._source.indicators()

    def warnings(self, window: float) -> Sequence[str]:
        """As the port says; that there are no figures yet, until everything is read."""
        if self._done.is_set():
            return self._source.warnings(window)
        return (str(self._problem()),)

    def _refuse(self) -> None:
        if not self._done.is_set():
            raise self._problem()

    def _problem(self) -> SliSourceError:
        progress = self._source.progress
        if progress is None and self._failed:
            return SliSourceError(f"the history is not read yet: {self._failed}")
        far = "" if progress is None else f": {_days(progress)} so far"
        return SliSourceError(f"the history is being read from {self.name}{far}", slow=True)

    def _run(self) -> None:
        started = time.monotonic()
        while not self._stopping.is_set():
            try:
                self._source.read_ahead(self._seconds)
            except SliSourceError as problem:
                if str(problem) != self._failed:
                    logger.warning("the history is not read yet: %s", problem)
                self._failed = str(problem)
            except Exception:  # one reading that fails must not be the last
                logger.exception("reading the history failed in an unforeseen way")
                self._failed = "it failed in an unforeseen way; the log says how"
            else:
                self._done.set()
                logger.info("the history was read in %.1f s", time.monotonic() - started)
                return
            self._stopping.wait(self._again)


def _days(progress: Progress) -> str:
    return f"{progress.done / _DAY:.0f} of {progress.whole / _DAY:.0f} days"
