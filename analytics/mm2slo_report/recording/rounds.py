"""Scrapes all exporters side by side, and waits for none of them longer than it may take."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_report.recording.scraping import TIMEOUT, ScrapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_report.recording.exposition import Page
    from mm2slo_report.recording.scraping import Target

logger = logging.getLogger(__name__)

_GRACE: Final = 0.5
"""Seconds for a scraper to say itself that it was too late."""


class Scrapes(Protocol):
    """A scraper, as a round needs it."""

    @property
    def target(self) -> Target:
        """What it scrapes."""

    def scrape(self) -> Page:
        """Raises ScrapeError."""

    def close(self) -> None:
        """Give back what it holds."""


class Rounds:
    """Rounds of *scrapers*; one that is not back in time is left out until it is."""

    def __init__(self, scrapers: Sequence[Scrapes], timeout: float = TIMEOUT) -> None:
        self._scrapers = {each.target.name: each for each in scrapers}
        self._timeout = timeout
        self._number = 0
        self._away: set[str] = set()
        self._ended = threading.Event()
        self._back: queue.SimpleQueue[tuple[int, str, Page | ScrapeError] | None] = (
            queue.SimpleQueue()
        )

    def scrape(self) -> Mapping[str, Page | ScrapeError]:
        """What each one gave, by the name of its target; what `end` cut short is not in it."""
        self._number += 1
        found: dict[str, Page | ScrapeError] = {}
        self._gather(found, time.monotonic())
        for name in self._scrapers.keys() - self._away:
            self._away.add(name)
            job = threading.Thread(target=self._run, args=(self._number, name), daemon=True)
            job.start()
        self._gather(found, time.monotonic() + self._timeout + _GRACE)
        if not self._ended.is_set():
            late = ScrapeError(f"it did not answer within {self._timeout:g} s")
            found |= dict.fromkeys(self._away, late)
        return found

    def end(self) -> None:
        """Make a running round return, and start no other."""
        self._ended.set()
        self._back.put(None)

    def close(self) -> None:
        """Give back connections that are not in use."""
        for name in self._scrapers.keys() - self._away:
            self._scrapers[name].close()

    def _gather(self, found: dict[str, Page | ScrapeError], deadline: float) -> None:
        while self._away and not self._ended.is_set():
            try:
                back = self._back.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                return
            if back is None:
                return
            number, name, result = back
            self._away.discard(name)
            # A page of an earlier round says nothing about now.
            if number == self._number:
                found[name] = result

    def _run(self, number: int, name: str) -> None:
        try:
            result: Page | ScrapeError = self._scrapers[name].scrape()
        except ScrapeError as problem:
            result = problem
        except Exception as error:  # a thread that dies silently would be waited for for ever
            logger.exception("scraping %s failed in an unforeseen way", name)
            result = ScrapeError(f"it failed in an unforeseen way: {type(error).__name__}")
        self._back.put((number, name, result))
