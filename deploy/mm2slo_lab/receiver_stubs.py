"""Stand-ins for Slack's incoming webhook and Splunk's HTTP Event Collector."""

import gzip
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

_PATH = "/services/demo"
_LARGEST = 1 << 20


class StubHandler(BaseHTTPRequestHandler):
    """Subclasses define `do_GET` and `do_POST`."""

    def answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        """Suppress log lines: the terminal shows the demo, or what was received."""


class SlackStub:
    """Receives messages at `url`; a context manager.

    *page* renders the messages so far for `GET /`; *on_message* gets each message.
    """

    def __init__(
        self,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        *,
        page: Callable[[list[dict[str, Any]]], str] | None = None,
        on_message: Callable[[dict[str, Any]], object] = lambda _message: None,
    ) -> None:
        self._page = page
        self._on_message = on_message
        self._messages: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(listen, _slack_handler(self))
        self._running = ExitStack()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{_PATH}"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Messages so far, as sent by Alertmanager."""
        with self._lock:
            return list(self._messages)

    def receive(self, body: bytes) -> None:
        """Keep the message *body*. Raises ValueError or LookupError if it is not Alertmanager's."""
        message = json.loads(body)
        with self._lock:
            self._on_message(message)
            self._messages.append(message)

    def render(self) -> str | None:
        """Return the page; None without one."""
        return None if self._page is None else self._page(self.messages)

    def __enter__(self) -> Self:
        self._running.enter_context(_serving(self._server))
        return self

    def __exit__(self, *_exception: object) -> None:
        self._running.close()


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    with server:
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _slack_handler(stub: SlackStub) -> type[StubHandler]:
    class Handler(StubHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            try:
                stub.receive(self.rfile.read(min(length, _LARGEST)))
            except (ValueError, LookupError):
                self.answer(HTTPStatus.BAD_REQUEST, "invalid_payload")
            else:
                self.answer(HTTPStatus.OK, "ok")

        def do_GET(self) -> None:
            page = stub.render() if self.path == "/" else None
            if page is None:
                self.answer(HTTPStatus.NOT_FOUND, "not found")
            else:
                self.answer(HTTPStatus.OK, page, "text/html; charset=utf-8")

    return Handler


_SUCCESS: Final = '{"text":"Success","code":0}'
_INVALID_TOKEN: Final = '{"text":"Invalid token","code":4}'


@contextmanager
def hec_stub(
    listen: tuple[str, int],
    token: str,
    on_event: Callable[[dict[str, Any]], object],
    *,
    certificate: Path | None = None,
    page: Callable[[], str] = str,
) -> Iterator[int]:
    """Receive events on the port that it yields; *on_event* gets each envelope.

    With *certificate*, which contains the key, it uses TLS. *page* is the answer to `GET /`.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if certificate is not None:
        context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(listen, _hec_handler(f"Splunk {token}", on_event, page))
    if certificate is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server):
        yield server.server_port


def _hec_handler(
    authorization: str, on_event: Callable[[dict[str, Any]], object], page: Callable[[], str]
) -> type[StubHandler]:
    class Handler(StubHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != authorization:
                self.answer(HTTPStatus.FORBIDDEN, _INVALID_TOKEN, "application/json")
                return
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for line in body.splitlines():
                on_event(json.loads(line))
            self.answer(HTTPStatus.OK, _SUCCESS, "application/json")

        def do_GET(self) -> None:
            self.answer(HTTPStatus.OK, page(), "text/plain; charset=utf-8")

    return Handler
