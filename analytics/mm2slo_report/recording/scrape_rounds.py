"""Scrapes all exporters concurrently, each with its own timeout."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_report.recording.scraper import TIMEOUT, ScrapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_report.recording.exposition import Page
    from mm2slo_report.recording.scraper import Target

logger = logging.getLogger(__name__)

_GRACE: Final = 0.5
"""Seconds for a scraper to report its own timeout."""


class TargetScraper(Protocol):
    """A scraper of one target."""

    @property
    def target(self) -> Target:
        """The exporter it scrapes."""

    def scrape(self) -> Page:
        """Scrape the target. Raises ScrapeError."""

    def close(self) -> None:
        """Close the connection."""


class ScrapeRounds:
    """Rounds of *scrapers*; a busy one is left out of further rounds until it is done."""

    def __init__(self, scrapers: Sequence[TargetScraper], timeout: float = TIMEOUT) -> None:
        self._scrapers = {each.target.name: each for each in scrapers}
        self._timeout = timeout
        self._number = 0
        self._busy: set[str] = set()
        self._ended = threading.Event()
        self._results: queue.SimpleQueue[tuple[int, str, Page | ScrapeError] | None] = (
            queue.SimpleQueue()
        )

    def scrape(self) -> Mapping[str, Page | ScrapeError]:
        """Results by target name, without those that `end` interrupted."""
        self._number += 1
        found: dict[str, Page | ScrapeError] = {}
        self._gather(found, time.monotonic())
        for name in self._scrapers.keys() - self._busy:
            self._busy.add(name)
            job = threading.Thread(target=self._run, args=(self._number, name), daemon=True)
            job.start()
        self._gather(found, time.monotonic() + self._timeout + _GRACE)
        if not self._ended.is_set():
            late = ScrapeError(f"no response within {self._timeout:g} s")
            found |= dict.fromkeys(self._busy, late)
        return found

    def end(self) -> None:
        """Interrupt a running round; later rounds are empty."""
        self._ended.set()
        self._results.put(None)

    def close(self) -> None:
        """Close connections that are not in use."""
        for name in self._scrapers.keys() - self._busy:
            self._scrapers[name].close()

    def _gather(self, found: dict[str, Page | ScrapeError], deadline: float) -> None:
        while self._busy and not self._ended.is_set():
            try:
                entry = self._results.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                return
            if entry is None:
                return
            number, name, result = entry
            self._busy.discard(name)
            # A page of an earlier round is outdated.
            if number == self._number:
                found[name] = result

    def _run(self, number: int, name: str) -> None:
        try:
            result: Page | ScrapeError = self._scrapers[name].scrape()
        except ScrapeError as problem:
            result = problem
        except Exception as error:  # without a result, the target would stay busy forever
            logger.exception("scraping %s failed unexpectedly", name)
            result = ScrapeError(f"unexpected error: {type(error).__name__}")
        self._results.put((number, name, result))
