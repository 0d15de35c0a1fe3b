"""HTTP calls to the APIs of Prometheus and Alertmanager."""

from __future__ import annotations

import base64
import http.client
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from mm2slo_core.secret import escape_credentials
from mm2slo_core.user_errors import UserError

_TIMEOUT_S: Final = 10.0
_MAX_SHOWN: Final = 300


class HttpStatusError(UserError):
    """The server responded with an error status; `body` is the whole response."""

    def __init__(self, text: str, status: int, body: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Server:
    """Base URL and credentials of a server; `str` and `repr` show no credentials."""

    name: str
    base: str
    _authorization: str | None = None

    @classmethod
    def of(cls, name: str, option: str, url: str) -> Server:
        """Parse *url*, for example `http://user:password@host:9093/prefix`.

        Raises UserError, naming *option*, when it is not an HTTP URL.
        """
        try:
            parts = urlsplit(escape_credentials(url.strip()))
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment:
            # Not repeated: it may contain a password.
            raise UserError(f"{option} is not an HTTP URL: use for example http://127.0.0.1:9093")
        host = parts.netloc.rpartition("@")[2]
        authorization = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return cls(name, f"{parts.scheme}://{host}{parts.path.rstrip('/')}", authorization)

    def __str__(self) -> str:
        return f"{self.name} at {self.base}"

    def __repr__(self) -> str:
        return f"Server({self})"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; returns the JSON of the response, or None if it is empty.

        Raises HttpStatusError for an error status, UserError when there is no usable response.
        """
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.base + path, data=data, method=method)
        request.add_header("Accept", "application/json")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self._authorization is not None:
            request.add_header("Authorization", self._authorization)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as response:
                text = response.read()
        except HTTPError as error:
            message = error.read().decode(errors="replace")
            brief = " ".join(message.split())[:_MAX_SHOWN]
            text = f"{self} returned HTTP {error.code}: {brief}".strip()
            raise HttpStatusError(text, error.code, message) from None
        except (URLError, OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            why = str(reason) or type(reason).__name__
            raise UserError(f"{self} is unreachable: {why}; check the URL") from None
        try:
            return json.loads(text) if text else None
        except ValueError:
            raise UserError(f"{self} returned a response that is not JSON: check the URL") from None
