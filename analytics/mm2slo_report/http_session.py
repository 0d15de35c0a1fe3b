"""HTTP requests to exporters and Prometheus: CA certificates, credentials, causes of failures."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import requests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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
