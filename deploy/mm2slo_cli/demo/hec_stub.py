"""A stand-in for Splunk's HTTP Event Collector that passes on the events of `mm2slo logship`."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from mm2slo_cli.demo.stub_handler import StubHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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
    with ThreadingHTTPServer(listen, _handler(f"Splunk {token}", on_event, page)) as server:
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _handler(
    authorization: str, on_event: Callable[[dict[str, Any]], object], page: Callable[[], str]
) -> type[StubHandler]:
    class Handler(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - named by http.server
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != authorization:
                self.answer(HTTPStatus.FORBIDDEN, _INVALID_TOKEN, "application/json")
                return
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for line in body.splitlines():
                on_event(json.loads(line))
            self.answer(HTTPStatus.OK, _SUCCESS, "application/json")

        def do_GET(self) -> None:  # noqa: N802 - named by http.server
            self.answer(HTTPStatus.OK, page(), "text/plain; charset=utf-8")

    return Handler
