"""One HTTP call to Prometheus or Alertmanager, from a command; the thin edge to urllib."""

from __future__ import annotations

import base64
import http.client
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from mm2slo_core.errors import UserError

_TIMEOUT_S: Final = 10.0
_SAID: Final = 300


class Refused(UserError):  # noqa: N818 - named for what is so; the base says it is an error
    """The other side answered with an error; `said` is all of its answer."""

    def __init__(self, text: str, status: int, said: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.said = said


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is, and as whom to speak to it; `str` shows neither user nor password."""

    name: str
    base: str
    _authorization: str | None = None

    @classmethod
    def of(cls, name: str, option: str, url: str) -> Server:
        """The server called *name* at *url*, as in `http://user:password@host:9093/prefix`.

        Raises UserError when *url*, given by *option*, is no address of HTTP.
        """
        parts = urlsplit(url.strip())
        try:
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment:
            # It may hold a password, so it is not repeated.
            raise UserError(
                f"{option} is not the address of a server: write for example http://127.0.0.1:9093"
            )
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
        """The answer to *method* on *path*, as JSON where there is any.

        Raises Refused when it answers with an error, UserError when it does not answer.
        """
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.base + path, data=data, method=method)
        request.add_header("Accept", "application/json")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self._authorization is not None:
            request.add_header("Authorization", self._authorization)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                text = answer.read()
        except HTTPError as error:
            said = error.read().decode(errors="replace")
            brief = " ".join(said.split())[:_SAID]
            text = f"{self} refused: {error.code} {brief}".strip()
            raise Refused(text, error.code, said) from None
        except (URLError, OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            why = str(reason) or type(reason).__name__
            raise UserError(f"{self} does not answer: {why}; check the address") from None
        try:
            return json.loads(text) if text else None
        except ValueError:
            raise UserError(
                f"{self} answered with something else than JSON: check the address"
            ) from None
