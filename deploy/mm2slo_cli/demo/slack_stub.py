"""A stub of Slack's incoming webhook that keeps its messages."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_PATH = "/services/demo"
_LARGEST = 1 << 20


class SlackStub:
    """Receives messages at `url`; a context manager."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._receive))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{_PATH}"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Messages so far, as sent by Alertmanager."""
        with self._arrived:
            return list(self._messages)

    def wait(self, count: int, timeout: float) -> bool:
        """Wait for *count* messages; False after *timeout* seconds."""
        with self._arrived:
            return self._arrived.wait_for(lambda: len(self._messages) >= count, timeout)

    def _receive(self, body: bytes) -> None:
        message = json.loads(body)
        with self._arrived:
            self._messages.append(message)
            self._arrived.notify_all()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(receive: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            receive(self.rfile.read(min(length, _LARGEST)))
            self.send_response(HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_arguments: object) -> None:
            """Suppress log lines: they would disturb the live view."""

    return Handler
