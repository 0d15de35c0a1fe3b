"""One scrape of one exporter: HTTP, with every way in which it can fail told in a sentence."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

import requests
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerInTime

from mm2slo_report.asking import session, trusted
from mm2slo_report.recording.exposition import InvalidExpositionError, Page, read_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LARGEST: Final = 256 << 20
"""Bytes of a page, decompressed: some ten million series."""
TIMEOUT: Final = 10.0
_OPENMETRICS: Final = "application/openmetrics-text"
_ACCEPT: Final = f"{_OPENMETRICS};version=1.0.0,text/plain;version=0.0.4;q=0.5"
_TYPES: Final = (_OPENMETRICS, "text/plain")
_CHUNK: Final = 1 << 18
_REFUSED: Final = {
    401: "it asks for a login: name its token file or its user and password file",
    403: "the login does not give access to it",
    404: "there is nothing at that path: expected an exporter's /metrics",
}
_SENTENCES: Final[Mapping[type[Exception], str]] = {
    requests.exceptions.SSLError: "the certificate is not trusted, or TLS failed",
    requests.ConnectionError: "there is no connection",
    requests.RequestException: "the answer broke off",
    HTTPError: "the answer broke off",
    OSError: "a file cannot be read",
}
"""The first that fits."""
_REDIRECTS: Final = range(300, 400)


class ScrapeError(Exception):
    """A scrape gave nothing. The text is one sentence without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One exporter, one replica: behind one address there must not be several.

    `url` is that of its page. Files are read at each scrape, so that secrets may be renewed.
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
        """The exporter at a base address, as in `http://exporter:9469`."""
        parts = urlsplit(address)
        url = parts._replace(path=f"{parts.path.rstrip('/')}/metrics")
        return cls(url=urlunsplit(url), token_file=token_file, ca_file=ca_file)

    @property
    def name(self) -> str:
        """The replica's name in the store, in logs and metrics: its address without a login."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Scraper:
    """Scrapes *target* over a connection that is kept. Not for use from several threads."""

    def __init__(self, target: Target, *, timeout: float = TIMEOUT, largest: int = LARGEST) -> None:
        """*timeout*: seconds for the answer to start, and for all of it."""
        self.target = target
        self._timeout = timeout
        self._largest = largest
        self._session = session()

    def scrape(self) -> Page:
        """The page as it is now. Raises ScrapeError."""
        deadline = time.monotonic() + self._timeout
        try:
            with self._session.get(
                self.target.url,
                headers=self._headers(),
                auth=self._login(),
                verify=trusted(self.target.ca_file),
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            ) as answer:
                return self._read(answer, deadline)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            raise ScrapeError(_sentence(error, self._timeout)) from error

    def close(self) -> None:
        """Give the connection back."""
        self._session.close()

    def _headers(self) -> Mapping[str, str]:
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "User-Agent": "mm2slo-recorder"}
        if self.target.token_file is not None:
            headers["Authorization"] = f"Bearer {_secret(self.target.token_file)}"
        return headers

    def _login(self) -> HTTPBasicAuth | None:
        if self.target.password_file is None:
            return None
        user, password = self.target.user, _secret(self.target.password_file)
        # As octets: requests would write text as Latin-1, the exporter reads UTF-8 (RFC 7617).
        return HTTPBasicAuth(user.encode(), password.encode())

    def _read(self, answer: requests.Response, deadline: float) -> Page:
        status = answer.status_code
        if status != requests.codes.ok:
            hint = _REFUSED.get(status)
            if status in _REDIRECTS:
                hint = "it leads elsewhere: name the address itself"
            raise ScrapeError(f"the answer is HTTP {status}" + (f": {hint}" if hint else ""))
        content = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if content not in _TYPES:
            shown = content or "nothing"
            raise ScrapeError(f"the answer says it is {shown}: expected an exporter's metrics")
        try:
            return read_page(self._chunks(answer, deadline), openmetrics=content == _OPENMETRICS)
        except InvalidExpositionError as problem:
            raise ScrapeError(f"the page cannot be read: {problem}") from problem

    def _chunks(self, answer: requests.Response, deadline: float) -> Iterator[bytes]:
        size = 0
        while chunk := answer.raw.read1(_CHUNK, decode_content=True):
            size += len(chunk)
            if size > self._largest:
                raise ScrapeError(f"the page is larger than {self._largest} bytes")
            if time.monotonic() > deadline:
                raise ScrapeError(_late(self._timeout))
            yield chunk


def _secret(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _sentence(error: Exception, timeout: float) -> str:
    if isinstance(error, (requests.Timeout, NoAnswerInTime)):
        return _late(timeout)
    if isinstance(error, UnicodeError):
        return "a file with a secret is no UTF-8 text"
    if isinstance(error, ValueError):
        # Its text would show the header that is refused, and with it the secret.
        return "the request cannot be made: a secret or the address holds forbidden characters"
    kinds = (text for kind, text in _SENTENCES.items() if isinstance(error, kind))
    return f"{next(kinds)}: {_cause(error)}"


def _late(timeout: float) -> str:
    return f"it did not answer within {timeout:g} s"


def _cause(error: BaseException) -> str:
    """The innermost cause in its own words: the outer ones repeat the address."""
    seen: BaseException = error
    while True:
        inner = seen.__cause__ or seen.__context__
        if inner is None:
            break
        seen = inner
    text = str(getattr(seen, "strerror", None) or seen).strip() or type(seen).__name__
    file = getattr(seen, "filename", None)
    return text if file is None else f"{file}: {text}"
