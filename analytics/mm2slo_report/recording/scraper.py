"""Scrapes an exporter over HTTP; every failure becomes a sentence."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

import requests
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerInTime

from mm2slo_report.http_session import ca_certificates, open_session
from mm2slo_report.recording.exposition import InvalidExpositionError, Page, read_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MAX_PAGE_BYTES: Final = 256 << 20
"""Maximum bytes of a decompressed page, about ten million series."""
TIMEOUT: Final = 10.0
_OPENMETRICS: Final = "application/openmetrics-text"
_ACCEPT: Final = f"{_OPENMETRICS};version=1.0.0,text/plain;version=0.0.4;q=0.5"
_TYPES: Final = (_OPENMETRICS, "text/plain")
_CHUNK: Final = 1 << 18
_HINTS: Final = {
    401: "authentication required: set the token file, or the user and password file",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One replica of an exporter; its address must not be shared by several.

    `url` is that of its metrics page. Files are read at each scrape, so secrets can be rotated.
    """

    url: str
    token_file: Path | None = None
    user: str = ""
    password_file: Path | None = None
    ca_file: Path | None = None

    @classmethod
    def at(
        cls, address: str, *, token_file: Path | None = None, ca_file: Path | None = None
    ) -> Target:
        """The exporter at a base address such as `http://exporter:9469`."""
        parts = urlsplit(address)
        url = parts._replace(path=f"{parts.path.rstrip('/')}/metrics")
        return cls(url=urlunsplit(url), token_file=token_file, ca_file=ca_file)

    @property
    def name(self) -> str:
        """The replica's name in the store, logs and metrics: its URL without credentials."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Scraper:
    """Scrapes *target* over a persistent connection. Not thread-safe."""

    def __init__(
        self, target: Target, *, timeout: float = TIMEOUT, max_bytes: int = MAX_PAGE_BYTES
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
            with self._session.get(
                self.target.url,
                headers=self._headers(),
                auth=self._basic_auth(),
                verify=ca_certificates(self.target.ca_file),
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            ) as answer:
                return self._read(answer, deadline)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            raise ScrapeError(_describe(error, self._timeout)) from error

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _headers(self) -> Mapping[str, str]:
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "User-Agent": "mm2slo-recorder"}
        if self.target.token_file is not None:
            headers["Authorization"] = f"Bearer {_secret(self.target.token_file)}"
        return headers

    def _basic_auth(self) -> HTTPBasicAuth | None:
        if self.target.password_file is None:
            return None
        user, password = self.target.user, _secret(self.target.password_file)
        # As bytes: requests would encode text as Latin-1, the exporter expects UTF-8 (RFC 7617).
        return HTTPBasicAuth(user.encode(), password.encode())

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
        while chunk := answer.raw.read1(_CHUNK, decode_content=True):
            size += len(chunk)
            if size > self._max_bytes:
                raise ScrapeError(f"the page is larger than {self._max_bytes} bytes")
            if time.monotonic() > deadline:
                raise ScrapeError(_timeout_text(self._timeout))
            yield chunk


def _secret(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _describe(error: Exception, timeout: float) -> str:
    if isinstance(error, (requests.Timeout, NoAnswerInTime)):
        return _timeout_text(timeout)
    if isinstance(error, UnicodeError):
        return "a file with a secret is not UTF-8 text"
    if isinstance(error, ValueError):
        # Its text would show the refused header, and with it the secret.
        return "invalid request: a secret or the address contains forbidden characters"
    kinds = (text for kind, text in _SENTENCES.items() if isinstance(error, kind))
    return f"{next(kinds)}: {_cause(error)}"


def _timeout_text(timeout: float) -> str:
    return f"no response within {timeout:g} s"


def _cause(error: BaseException) -> str:
    """The message of the innermost cause; the outer ones repeat the address."""
    seen: BaseException = error
    while True:
        inner = seen.__cause__ or seen.__context__
        if inner is None:
            break
        seen = inner
    text = str(getattr(seen, "strerror", None) or seen).strip() or type(seen).__name__
    file = getattr(seen, "filename", None)
    return text if file is None else f"{file}: {text}"
