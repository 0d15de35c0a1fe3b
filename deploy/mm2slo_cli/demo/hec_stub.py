"""A stand-in for Splunk's HTTP Event Collector that passes on the events of `mm2slo logship`."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SUCCESS: Final = (HTTPStatus.OK, b'{"text":"Success","code":0}')
_INVALID_TOKEN: Final = (HTTPStatus.FORBIDDEN, b'{"text":"Invalid token","code":4}')


@contextmanager
def hec_stub(
    listen: tuple[str, int], certificate: Path, token: str, on_event: Callable[[Any], object]
) -> Iterator[int]:
    """Receive events on the port that it yields, with TLS; *certificate* contains the key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(listen, _handler(f"Splunk {token}", on_event)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _handler(authorization: str, on_event: Callable[[Any], object]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_authorized = self.headers.get("Authorization") == authorization
            if is_authorized:
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for line in body.splitlines():
                    on_event(json.loads(line)["event"])
            status, answer = _SUCCESS if is_authorized else _INVALID_TOKEN
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: object) -> None:
            """Suppress log lines: standard output has the events."""

    return Handler
