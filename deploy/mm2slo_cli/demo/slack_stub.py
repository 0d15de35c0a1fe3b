"""A stub of Slack's incoming webhook that keeps its messages, and may show them on a page."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from mm2slo_cli.demo.stub_handler import StubHandler

if TYPE_CHECKING:
    from collections.abc import Callable

_PATH = "/services/demo"
_LARGEST = 1 << 20


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
        self._arrived = threading.Condition()
        self._server = ThreadingHTTPServer(listen, _handler(self))
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

    def receive(self, body: bytes) -> None:
        """Keep the message *body*. Raises ValueError or LookupError if it is not Alertmanager's."""
        message = json.loads(body)
        with self._arrived:
            self._on_message(message)
            self._messages.append(message)
            self._arrived.notify_all()

    def render(self) -> str | None:
        """Return the page; None without one."""
        return None if self._page is None else self._page(self.messages)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(stub: SlackStub) -> type[StubHandler]:
    class Handler(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - named by http.server
            length = int(self.headers.get("Content-Length") or 0)
            try:
                stub.receive(self.rfile.read(min(length, _LARGEST)))
            except (ValueError, LookupError):
                self.answer(HTTPStatus.BAD_REQUEST, "invalid_payload")
            else:
                self.answer(HTTPStatus.OK, "ok")

        def do_GET(self) -> None:  # noqa: N802 - named by http.server
            page = stub.render() if self.path == "/" else None
            if page is None:
                self.answer(HTTPStatus.NOT_FOUND, "not found")
            else:
                self.answer(HTTPStatus.OK, page, "text/html; charset=utf-8")

    return Handler
