"""Reads an exporter's page over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TIMEOUT: Final = 5.0
_ALTOGETHER: Final = 15.0
"""Seconds for a whole page: one that trickles in would hold up whoever asks."""
_LARGEST: Final = 256 * 1024 * 1024


class Fetcher:
    """Asks with a bearer token from a file, if there is one; trusts *ca_file* or the system."""

    def __init__(self, token_file: Path | None = None, ca_file: Path | None = None) -> None:
        self._token_file = token_file
        self._ca_file = ca_file

    def __call__(self, address: str) -> Iterator[str]:
        """The lines of the page `/metrics` at *address*. Raises SliSourceError."""
        # Heavy to import, and not needed before the first question.
        import requests

        from mm2slo_report.asking import session, trusted

        try:
            with (
                session() as asking,
                asking.get(
                    f"{address}/metrics",
                    headers={"Accept": "text/plain;version=0.0.4", **self._login()},
                    timeout=_TIMEOUT,
                    verify=trusted(self._ca_file),
                    stream=True,
                    allow_redirects=False,
                ) as answer,
            ):
                if answer.status_code != requests.codes.ok:
                    raise SliSourceError(f"the exporter {address} answers {answer.status_code}")
                taken, deadline = 0, time.monotonic() + _ALTOGETHER
                for line in answer.iter_lines(chunk_size=1 << 16):
                    taken += len(line)
                    if taken > _LARGEST:
                        raise SliSourceError(f"the exporter {address} answers too much")
                    if time.monotonic() > deadline:
                        raise SliSourceError(
                            f"the exporter {address} answers too slowly", slow=True
                        )
                    yield line.decode("utf-8", "replace")
        except requests.Timeout:
            raise SliSourceError(
                f"the exporter {address} does not answer in {_TIMEOUT:g} s", slow=True
            ) from None
        except (requests.RequestException, OSError, ValueError) as error:
            # A ValueError is of a secret that no header can hold: its text would show it.
            raise SliSourceError(
                f"the exporter {address} cannot be asked ({type(error).__name__})"
            ) from None

    def _login(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        token = self._token_file.read_text(encoding="utf-8").strip()
        return {"Authorization": f"Bearer {token}"}
