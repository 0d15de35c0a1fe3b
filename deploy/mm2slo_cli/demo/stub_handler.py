"""The requests of a stand-in's HTTP server: short answers, no log lines."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from http import HTTPStatus


class StubHandler(BaseHTTPRequestHandler):
    """Subclasses define `do_GET` and `do_POST`."""

    def answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        """Suppress log lines: the terminal shows the demo, or what was received."""
