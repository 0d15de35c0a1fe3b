"""The stand-in as an HTTP server on loopback."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from fake_hec.faults import Fault
from fake_hec.hec_index import HecIndex, HecToken, Reply, reply

_PATH: Final = re.compile(r"/services/collector(?:/(event|ack|health))?(?:/1\.0)?")
_NO_PATH: Final = (404, {"text": "The requested URL was not found on this server.", "code": 404})


class FakeHec:
    """Serves until `stop`; `start` again uses the same port.

    `faults` meet the next requests, in order; `fault` meets every request.
    """

    def __init__(
        self,
        tokens: Mapping[str, HecToken] | None = None,
        *,
        max_bytes: int = 5_242_881,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.index = HecIndex(tokens or {"token-1": HecToken()}, max_bytes)
        self.faults: deque[Fault] = deque()
        self.fault: Fault | None = None
        self.requests: list[Mapping[str, str]] = []
        self._tls = tls
        self._port = 0
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def events(self) -> list[Any]:
        """The indexed `event` objects, in order."""
        return [each["event"] for each in self.index.events]

    def start(self) -> FakeHec:
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.fake = self
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.cut_connections()
            self._server = None

    def __enter__(self) -> FakeHec:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def next_fault(self) -> Fault | None:
        try:
            return self.faults.popleft()
        except IndexError:
            return self.fault


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    fake: FakeHec

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        """End kept connections, too."""
        for connection in tuple(self._connections):
            with suppress(OSError):  # the client has closed it
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that was killed is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        pass

    def do_GET(self) -> None:
        match = _PATH.fullmatch(self.path)
        if match and match[1] == "health":
            self._answer(*reply(17))
        elif match:
            self._answer(405, {"text": "Method Not Allowed", "code": 404})
        else:
            self._answer(*_NO_PATH)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fake = self.server.fake
        fake.requests.append(dict(self.headers))
        match = _PATH.fullmatch(self.path.partition("?")[0])
        if match is None or match[1] == "health":
            self._answer(*_NO_PATH)
            return
        fault = None if match[1] == "ack" else fake.next_fault()
        if fault is None:
            answer = self._take(match[1], body)
            if answer is not None:
                self._answer(*answer)
            return
        time.sleep(fault.delay)
        if fault.indexes:
            self._take(match[1], body)
        if not fault.status:
            self.close_connection = True
            return
        self._write(fault.status, fault.body, fault.headers, is_cut=fault.is_cut)

    def _take(self, kind: str | None, body: bytes) -> Reply | None:
        """None: an answer in HTML was written."""
        index = self.server.fake.index
        encoding = self.headers.get("Content-Encoding")
        if encoding not in {None, "gzip"}:
            self._write(415, b"<html>Unsupported Media Type</html>", {"Content-Type": "text/html"})
            return None
        token = index.authorize(self.headers.get("Authorization"))
        if not isinstance(token, HecToken):
            return token
        if encoding:
            body = gzip.decompress(body)
        channel = self.headers.get("X-Splunk-Request-Channel")
        if kind != "ack":
            return index.take(token, channel, body)
        try:
            return index.acks(token, channel, json.loads(body))
        except ValueError:
            return reply(6)

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        self._write(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _write(
        self, status: int, body: bytes, headers: Mapping[str, str], *, is_cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.wfile.flush()
        self.close_connection = self.close_connection or is_cut
