"""Scrapes all exporters concurrently over HTTP, each with its own timeout.

Every failure becomes a sentence.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import requests
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerInTime

from mm2slo_report.http_session import Server, innermost_cause, open_session
from mm2slo_report.recording.scraped_counters import InvalidExpositionError, Page, read_page

logger = logging.getLogger(__name__)

_GRACE: Final = 0.5
"""Seconds for a scraper to report its own timeout."""


class TargetScraper(Protocol):
    """A scraper of one target."""

    @property
    def target(self) -> ScrapeTarget:
        """The exporter it scrapes."""

    def scrape(self) -> Page:
        """Scrape the target. Raises ScrapeError."""

    def close(self) -> None:
        """Close the connection."""


TIMEOUT: Final = 10.0


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


MAX_PAGE_BYTES: Final = 256 << 20
"""Maximum bytes of a decompressed page, about ten million series."""
_OPENMETRICS: Final = "application/openmetrics-text"

_HEADERS: Final = {
    "Accept": f"{_OPENMETRICS};version=1.0.0,text/plain;version=0.0.4;q=0.5",
    "Accept-Encoding": "gzip",
    "User-Agent": "mm2slo-recorder",
}
_TYPES: Final = (_OPENMETRICS, "text/plain")
_CHUNK: Final = 1 << 18

_HINTS: Final = {
    401: "authentication required: set report.recorder.token_file",
    403: "access denied for these credentials",
    404: "not found; expected an exporter's /metrics",
}

_SENTENCES: Final[Mapping[type[Exception], str]] = {
    requests.exceptions.SSLError: "the certificate is not trusted, or TLS failed",
    requests.ConnectionError: "connection failed",
    requests.RequestException: "the response was truncated",
    HTTPError: "the response was truncated",
    OSError: "cannot read a file",
}
"""The first match applies."""
_REDIRECTS: Final = range(300, 400)


class ScrapeError(Exception):
    """A scrape failed. The text is one sentence without secrets."""


class ScrapeTarget(Server):
    """The metrics page of one replica of an exporter; its address must not be shared by several."""

    @classmethod
    def at(
        cls, address: str, *, token_file: Path | None = None, ca_file: Path | None = None
    ) -> ScrapeTarget:
        """The exporter at a base address such as `http://exporter:9469`."""
        url = f"{address.rstrip('/')}/metrics"
        return cls(url=url, token_file=token_file, ca_file=ca_file)


class Scraper:
    """Scrapes *target* over a persistent connection. Not thread-safe."""

    def __init__(
        self, target: ScrapeTarget, *, timeout: float = TIMEOUT, max_bytes: int = MAX_PAGE_BYTES
    ) -> None:
        """*timeout*: seconds until the response starts, and for the whole scrape."""
        self.target = target
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._session = open_session()

    def scrape(self) -> Page:
        """Scrape the page. Raises ScrapeError."""
        deadline = time.monotonic() + self._timeout
        try:
            with self.target.request(
                self._session, "GET", headers=_HEADERS, timeout=self._timeout, stream=True
            ) as answer:
                return self._read(answer, deadline)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            raise ScrapeError(_describe(error, self._timeout)) from error

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _read(self, answer: requests.Response, deadline: float) -> Page:
        status = answer.status_code
        if status != requests.codes.ok:
            hint = _HINTS.get(status)
            if status in _REDIRECTS:
                hint = "redirects are not followed: set the final address"
            raise ScrapeError(f"HTTP {status}" + (f": {hint}" if hint else ""))
        content = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if content not in _TYPES:
            raise ScrapeError(
                f"unexpected content type {content or '(none)'}; expected an exporter's metrics"
            )
        try:
            return read_page(self._chunks(answer, deadline), openmetrics=content == _OPENMETRICS)
        except InvalidExpositionError as problem:
            raise ScrapeError(f"invalid page: {problem}") from problem

    def _chunks(self, answer: requests.Response, deadline: float) -> Iterator[bytes]:
        size = 0
        # read1() returns what has arrived; read() would wait for a whole chunk, past the deadline.
        while chunk := answer.raw.read1(_CHUNK, decode_content=True):
            size += len(chunk)
            if size > self._max_bytes:
                raise ScrapeError(f"the page is larger than {self._max_bytes} bytes")
            if time.monotonic() > deadline:
                raise ScrapeError(_timeout_text(self._timeout))
            yield chunk


def _describe(error: Exception, timeout: float) -> str:
    if isinstance(error, (requests.Timeout, NoAnswerInTime)):
        return _timeout_text(timeout)
    if isinstance(error, UnicodeError):
        return "a file with a secret is not UTF-8 text"
    if isinstance(error, ValueError):
        # Its text would show the refused header, and with it the secret.
        return "invalid request: a secret or the address contains forbidden characters"
    kinds = (text for kind, text in _SENTENCES.items() if isinstance(error, kind))
    return f"{next(kinds)}: {innermost_cause(error)}"


def _timeout_text(timeout: float) -> str:
    return f"no response within {timeout:g} s"
