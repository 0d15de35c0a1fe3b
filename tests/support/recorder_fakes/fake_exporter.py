"""A fake exporter on the loopback address with configurable faults."""

import gzip
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from recorder_fakes import CLASSIC


@dataclass
class FakeExporter:
    """The current response and the received requests; serves within a `with` block."""

    body: str | bytes = ""
    status: int = 200
    content_type: str = CLASSIC
    compressed: bool = False
    piece: int = 1 << 20
    """Bytes per write."""
    missing: int = 0
    """Bytes of Content-Length that are never sent."""
    hold: threading.Event | None = None
    """Responds once it is set."""
    location: str = ""
    requests: list[Mapping[str, str]] = field(default_factory=list)
    """Headers of each request, names in lower case."""
    reached: threading.Event = field(default_factory=threading.Event)
    """Set by the first request."""
    answered: threading.Event = field(default_factory=threading.Event)
    """Set by the first complete response."""
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # avoids a delay of 40 ms per response

            def do_GET(self) -> None:
                exporter.respond(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # clients disconnect early on purpose

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def address(self) -> str:
        """The base URL."""
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.server_port}"

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.requests.append({name.lower(): value for name, value in handler.headers.items()})
        self.reached.set()
        if self.hold is not None:
            self.hold.wait()
        body = self.body.encode() if isinstance(self.body, str) else self.body
        body = gzip.compress(body) if self.compressed else body
        handler.send_response(self.status)
        handler.send_header("Content-Type", self.content_type)
        handler.send_header("Content-Length", str(len(body) + self.missing))
        if self.compressed:
            handler.send_header("Content-Encoding", "gzip")
        if self.location:
            handler.send_header("Location", self.location)
        handler.end_headers()
        for at in range(0, len(body), self.piece):
            handler.wfile.write(body[at : at + self.piece])
            handler.wfile.flush()
        self.answered.set()
        handler.close_connection = bool(self.missing)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.hold is not None:
            self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
