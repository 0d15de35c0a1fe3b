"""One connection: requests in, responses out, until either side has enough."""

from __future__ import annotations

import io
import logging
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from mm2slo_exporter.web.connection import DeadlineReader, HeaderTooLargeError, send
from mm2slo_exporter.web.messages import Request, Response, text_response
from mm2slo_exporter.web.routes import respond

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from mm2slo_exporter.web.access import Access
    from mm2slo_exporter.web.connection import Limits
    from mm2slo_exporter.web.site import Site

_LOG = logging.getLogger(__name__)
_STATUSES = {status.value: status for status in HTTPStatus}


class Handler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.1 with one client; everything it needs is handed in."""

    protocol_version = "HTTP/1.1"

    def __init__(
        self,
        connection: socket.socket,
        client_address: Any,
        server: Any,
        *,
        site: Site,
        access: Callable[[], Access],
        limits: Limits,
    ) -> None:
        self._site = site
        self._current_access = access
        self._limits = limits
        super().__init__(connection, client_address, server)

    def setup(self) -> None:
        """As the base class, with reads under a deadline and writes of our own."""
        self.connection = self.request
        self._reader = DeadlineReader(self.connection)
        self._input = io.BufferedReader(self._reader)
        self.rfile = self._input
        self.wfile = io.BytesIO()  # the base class writes nothing; `_reply` sends

    def handle(self) -> None:
        """Serve requests until the connection is to be closed."""
        seconds = self._limits.header_seconds
        self.close_connection = False
        while not self.close_connection:
            self.close_connection = True
            if not self._wait(seconds):
                return
            self.handle_one_request()
            seconds = self._limits.idle_seconds

    def _wait(self, seconds: float) -> bool:
        """Whether a request starts within *seconds*."""
        self._reader.allow(seconds, self._limits.header_bytes)
        try:
            return bool(self._input.peek(1))
        except TimeoutError:
            return False

    def handle_one_request(self) -> None:
        """Read one head and answer it."""
        self._head_only = False
        self._access = self._current_access()  # users may change while a connection is kept
        self._reader.extend(self._limits.header_seconds)
        try:
            self.raw_requestline = self.rfile.readline()
            if not self.raw_requestline or not self.parse_request():
                return  # parse_request has answered
        except TimeoutError:
            self.send_error(HTTPStatus.REQUEST_TIMEOUT)
            return
        except HeaderTooLargeError:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        if self.request_version < "HTTP/1.0":
            self.send_error(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
            return
        if self.request_version == "HTTP/1.0":
            self.close_connection = True
        if self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers:
            self.close_connection = True  # no endpoint reads a body, so it must not be parsed
        self._head_only = self.command == "HEAD"
        self._reply(self._answer())

    def _answer(self) -> Response:
        request = Request(
            self.command,
            self.path.partition("?")[0],
            self.client_address[0],
            {name.lower(): ", ".join(self.headers.get_all(name, ())) for name in self.headers},
        )
        try:
            return respond(request, self._site, self._access.authenticator)
        except Exception:  # noqa: BLE001 - a failing page must return a response
            _LOG.exception("%s %s failed", request.method, request.path)
            return text_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log")

    def _reply(self, response: Response) -> None:
        own = {
            "Server": "mm2slo",
            "Date": self.date_time_string(),
            "Content-Type": response.content_type,
            "Content-Length": str(response.length),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        if self.close_connection:
            own["Connection"] = "close"
        set_by_user = {name.lower() for name, _ in self._access.headers}
        lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
        lines += [
            f"{name}: {value}"
            for name, value in (*own.items(), *response.headers)
            if name.lower() not in set_by_user
        ]
        lines += [f"{name}: {value}" for name, value in self._access.headers]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        chunks = () if self._head_only else response.chunks
        send(self.connection, (head, *chunks), self._limits.send_seconds)

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,
    ) -> None:
        """Answer a request that cannot be read, and close."""
        self.close_connection = True
        status = _STATUSES[code]
        self._reply(text_response(status, status.phrase.lower()))

    def handle_expect_100(self) -> bool:
        """No endpoint reads a body, so none is asked for."""
        return True

    def log_message(self, *_: object) -> None:
        """Scrapes are not news."""
