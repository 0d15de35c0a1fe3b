"""Fetches an exporter's `/metrics` over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import requests

from mm2slo_report.http_session import Server, open_session
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ACCEPT: Final = {"Accept": "text/plain;version=0.0.4"}
_TIMEOUT: Final = 5.0
_TOTAL_TIMEOUT: Final = 15.0
"""Seconds for a whole page, so that a slow response cannot block callers."""
_MAX_BYTES: Final = 256 * 1024 * 1024


class MetricsFetcher:
    """Fetches with a bearer token from *token_file*, if any; trusts *ca_file* or the system."""

    def __init__(self, token_file: Path | None = None, ca_file: Path | None = None) -> None:
        self._token_file = token_file
        self._ca_file = ca_file

    def __call__(self, address: str) -> Iterator[str]:
        """The lines of `/metrics` at *address*. Raises SliSourceError."""
        server = Server(url=address, token_file=self._token_file, ca_file=self._ca_file)
        try:
            with (
                open_session() as session,
                server.request(
                    session, "GET", "/metrics", headers=_ACCEPT, timeout=_TIMEOUT, stream=True
                ) as response,
            ):
                if response.status_code != requests.codes.ok:
                    raise SliSourceError(
                        f"exporter {address} returned status {response.status_code}"
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
            raise SliSourceError(
                f"cannot fetch metrics from exporter {address} ({type(error).__name__})"
            ) from None
