"""HTTP calls to Prometheus and Alertmanager."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from mm2slo_cli.exclusion_effects import HttpStatusError, MonitoringApi
from mm2slo_core.user_errors import UserError


@contextmanager
def serve_response(status: int, body: bytes) -> Iterator[tuple[int, list[tuple[str, str, bytes]]]]:
    """A server with one response; yields its port and the requests."""
    requests: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            authorization = self.headers.get("Authorization", "")
            requests.append((self.path, authorization, self.rfile.read(length)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port, requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def server_at(url: str) -> MonitoringApi:
    return MonitoringApi.of("Alertmanager", "--alertmanager-url", url)


def test_password_with_special_characters_is_sent_and_not_shown() -> None:
    with serve_response(200, b"{}") as (port, requests):
        server = server_at(f"http://ana:1/p@ss#?@127.0.0.1:{port}/am")
        server.call("POST", "/api/v2/silences", {})
    assert base64.b64decode(requests[0][1].removeprefix("Basic ")) == b"ana:1/p@ss#?"
    assert str(server) == f"Alertmanager at http://127.0.0.1:{port}/am"


def test_call_sends_prefix_credentials_and_body() -> None:
    with serve_response(200, b'{"silenceID": "5e7c"}') as (port, requests):
        server = server_at(f" http://ana:p%40ss@127.0.0.1:{port}/am/ ")
        assert server.call("POST", "/api/v2/silences", {"a": "ü"}) == {"silenceID": "5e7c"}
    ((path, authorization, body),) = requests
    assert path == "/am/api/v2/silences"
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"ana:p@ss"
    assert json.loads(body) == {"a": "ü"}
    assert str(server) == f"Alertmanager at http://127.0.0.1:{port}/am"
    assert "ss" not in repr(server).replace("p%40ss", "!")


def test_call_empty_response_returns_none() -> None:
    with serve_response(200, b"") as (port, _):
        assert server_at(f"http://127.0.0.1:{port}").call("POST", "/-/reload") is None


def test_call_error_status_raises_with_start_of_response() -> None:
    body = b'"start time\n must be  before end time"' + b" " * 99 + b"x" * 999
    with serve_response(400, body) as (port, _), pytest.raises(HttpStatusError) as refused:
        server_at(f"http://ana:s3cr3t@127.0.0.1:{port}").call("POST", "/")
    message = str(refused.value)
    assert message.startswith(
        f"Alertmanager at http://127.0.0.1:{port} returned HTTP 400: "
        '"start time must be before end time"'
    )
    assert len(message) < 400
    assert "s3cr3t" not in message
    assert refused.value.status == 400


def test_call_response_without_json_raises_user_error() -> None:
    with (
        serve_response(200, b"<html>login</html>") as (port, _),
        pytest.raises(UserError) as refused,
    ):
        server_at(f"http://127.0.0.1:{port}").call("POST", "/")
    assert "returned a response that is not JSON: check the URL" in str(refused.value)


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
def test_server_invalid_url_raises_without_repeating_it(url: str) -> None:
    with pytest.raises(UserError) as refused:
        server_at(url)
    assert str(refused.value) == (
        "--alertmanager-url is not an HTTP URL: use for example http://127.0.0.1:9093"
    )
