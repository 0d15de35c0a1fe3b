"""HTTP requests to exporters and Prometheus: CA certificates, credentials, failures.

`ExporterFetcher` reads an exporter's current pages; the recorder scrapes by itself.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import requests

from mm2slo_report.sli_source import SliSourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server and its credentials; its address may have a path.

    Files are read at each request, so secrets can be rotated.
    """

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    """None: the system's certificates, else those of requests."""

    @property
    def name(self) -> str:
        """The address without credentials, for the store, logs and messages."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))

    def request(
        self,
        session: requests.Session,
        method: str,
        path: str = "",
        *,
        headers: Mapping[str, str],
        **options: Any,
    ) -> requests.Response:
        """Send a request to *path* below the address; redirects are not followed."""
        authorization = {}
        if self.token_file is not None:
            token = self.token_file.read_text(encoding="utf-8").strip()
            authorization["Authorization"] = f"Bearer {token}"
        trusted = self.ca_file or ssl.get_default_verify_paths().cafile
        return session.request(
            method,
            f"{self.url.rstrip('/')}{path}",
            headers={**headers, **authorization},
            verify=str(trusted) if trusted else True,
            allow_redirects=False,
            **options,
        )


def open_session() -> requests.Session:
    """A session that ignores proxies and .netrc. Not thread-safe."""
    session = requests.Session()
    # A .netrc file or an environment proxy must not receive or replace our credentials.
    session.trust_env = False
    return session


def innermost_cause(error: BaseException) -> str:
    """The message of the innermost cause; the outer ones repeat the address."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    text = " ".join(str(getattr(error, "strerror", None) or error).split()) or type(error).__name__
    file = getattr(error, "filename", None)
    return text if file is None else f"{file}: {text}"


_ACCEPT: Final = {"Accept": "text/plain;version=0.0.4"}
_TIMEOUT: Final = 5.0

_TOTAL_TIMEOUT: Final = 15.0
"""Seconds for a whole page, so that a slow response cannot block callers."""
_MAX_BYTES: Final = 256 * 1024 * 1024


class ExporterFetcher:
    """Fetches with a bearer token from *token_file*, if any; trusts *ca_file* or the system."""

    def __init__(self, token_file: Path | None = None, ca_file: Path | None = None) -> None:
        self._token_file = token_file
        self._ca_file = ca_file

    def __call__(self, address: str, path: str = "/metrics") -> Iterator[str]:
        """The lines of *path* at *address*. Raises SliSourceError."""
        server = Server(url=address, token_file=self._token_file, ca_file=self._ca_file)
        try:
            with (
                open_session() as session,
                server.request(
                    session, "GET", path, headers=_ACCEPT, timeout=_TIMEOUT, stream=True
                ) as response,
            ):
                if response.status_code != requests.codes.ok:
                    raise SliSourceError(
                        f"exporter {address} returned status {response.status_code}",
                        status=response.status_code,
                    )
                received, deadline = 0, time.monotonic() + _TOTAL_TIMEOUT
                for line in response.iter_lines(chunk_size=1 << 16):
                    received += len(line)
                    if received > _MAX_BYTES:
                        raise SliSourceError(f"the response of exporter {address} is too large")
                    if time.monotonic() > deadline:
                        raise SliSourceError(
                            f"the response of exporter {address} is too slow", slow=True
                        )
                    yield line.decode("utf-8", "replace")
        except requests.Timeout:
            raise SliSourceError(
                f"exporter {address} did not respond within {_TIMEOUT:g} s", slow=True
            ) from None
        except (requests.RequestException, OSError, ValueError) as error:
            # A ValueError about an invalid header would quote the token.
            what, why = path.rpartition("/")[2], type(error).__name__
            raise SliSourceError(f"cannot fetch {what} from exporter {address} ({why})") from None
