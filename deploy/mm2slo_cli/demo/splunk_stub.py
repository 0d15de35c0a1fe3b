"""A stub of Splunk's HTTP Event Collector that shows the newest events on a page."""

from __future__ import annotations

import gzip
import json
import threading
from collections import deque
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT: Final = 1_000
_SEARCH: Final = 'in Splunk: index=repl_logs flow="us->eu" level IN (WARN, ERROR)'


class SplunkStub:
    """Receives events at `url`, and shows them at `GET /`; a context manager."""

    def __init__(self, token: str, listen: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.token = token
        self._events: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._count = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(listen, _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def receive(self, body: bytes) -> None:
        """Keep the events of *body*. Raises ValueError if it is not a batch of envelopes."""
        events = list(_envelopes(body.decode()))
        with self._lock:
            self._events += events
            self._count += len(events)

    def render(self) -> str:
        """Return the newest events as JSON lines, the latest first."""
        with self._lock:
            newest, count = [json.dumps(each) for each in reversed(self._events)], self._count
        return "\n".join(
            [f"{count} events, the {len(newest)} newest first; {_SEARCH}", *newest, ""]
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _envelopes(text: str) -> Iterator[dict[str, Any]]:
    decoder, position = json.JSONDecoder(), 0
    while rest := text[position:].lstrip():
        envelope, length = decoder.raw_decode(rest)
        if "event" not in envelope:
            raise ValueError("no event")
        yield envelope
        position = len(text) - len(rest) + length


def _handler(stub: SplunkStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # the shipper keeps its connection

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Splunk {stub.token}":
                self._reply(HTTPStatus.FORBIDDEN, 4, "Invalid token")
                return
            try:
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                stub.receive(body)
            except (ValueError, TypeError, OSError):
                self._reply(HTTPStatus.BAD_REQUEST, 6, "Invalid data format")
            else:
                self._reply(HTTPStatus.OK, 0, "Success")

        def do_GET(self) -> None:
            self._answer(HTTPStatus.OK, stub.render(), "text/plain; charset=utf-8")

        def _reply(self, status: HTTPStatus, code: int, text: str) -> None:
            self._answer(status, json.dumps({"text": text, "code": code}), "application/json")

        def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Suppress log lines: they would disturb the live view."""

    return Handler
