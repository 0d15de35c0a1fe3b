"""One HTTP call: what is sent, what comes back, and what is said when it fails."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from mm2slo_cli.web_calls import Refused, Server
from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[int, list[tuple[str, str, bytes]]]]:
    """A server that answers everything alike; gives its port and what it was asked."""
    asked: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            authorization = self.headers.get("Authorization", "")
            asked.append((self.path, authorization, self.rfile.read(length)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Quietly."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def of(url: str) -> Server:
    return Server.of("Alertmanager", "--alertmanager-url", url)


def test_the_call_has_the_prefix_the_login_and_the_body() -> None:
    with answering(200, b'{"silenceID": "5e7c"}') as (port, asked):
        server = of(f" http://ana:p%40ss@127.0.0.1:{port}/am/ ")
        assert server.call("POST", "/api/v2/silences", {"a": "ü"}) == {"silenceID": "5e7c"}
    ((path, authorization, body),) = asked
    assert path == "/am/api/v2/silences"
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"ana:p@ss"
    assert json.loads(body) == {"a": "ü"}
    assert str(server) == f"Alertmanager at http://127.0.0.1:{port}/am"
    assert "ss" not in repr(server).replace("p%40ss", "!")


def test_an_answer_without_a_body_is_none() -> None:
    with answering(200, b"") as (port, _):
        assert of(f"http://127.0.0.1:{port}").call("POST", "/-/reload") is None


def test_a_refusal_is_told_with_the_first_words_of_the_answer() -> None:
    body = b'"start time\n must be  before end time"' + b" " * 99 + b"x" * 999
    with answering(400, body) as (port, _), pytest.raises(Refused) as refused:
        of(f"http://ana:s3cr3t@127.0.0.1:{port}").call("POST", "/")
    told = str(refused.value)
    assert told.startswith(
        f'Alertmanager at http://127.0.0.1:{port} refused: 400 "start time must be before end time"'
    )
    assert len(told) < 400
    assert "s3cr3t" not in told
    assert refused.value.status == 400


def test_what_is_no_json_is_told() -> None:
    with answering(200, b"<html>login</html>") as (port, _), pytest.raises(UserError) as refused:
        of(f"http://127.0.0.1:{port}").call("POST", "/")
    assert "answered with something else than JSON: check the address" in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "alertmanager:9093",
        "ftp://am:9093",
        "file:///etc/passwd",
        "http://",
        "http://:9093",
        "http://am:port",
        "http://am:99999",
        "http://am:9093?x=1",
        "http://ana:s3cr3t@am:9093#x",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UserError) as refused:
        of(url)
    assert str(refused.value) == (
        "--alertmanager-url is not the address of a server: write for example http://127.0.0.1:9093"
    )
