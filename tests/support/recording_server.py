"""An HTTP server on loopback that passes requests to a callback, which returns the responses."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self

_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """A received request; header names are in lower case, `at` is monotonic time."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int = 200
    body: str = "ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/plain; charset=utf-8"


class RecordingServer:
    """Serves while this context manager is active; *answer* handles one request at a time."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self._lock = threading.Lock()
        lock = self._lock

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(min(length, _LARGEST))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body, time.monotonic())
                with lock:
                    answered = answer(request)
                content = answered.body.encode()
                self.send_response(answered.status)
                self.send_header("Content-Type", answered.content_type)
                self.send_header("Content-Length", str(len(content)))
                for name, value in answered.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names that the base class calls

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def address(self) -> str:
        """The base URL, such as `http://127.0.0.1:12345`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
