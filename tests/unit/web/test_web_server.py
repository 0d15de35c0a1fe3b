"""The server's thread and its certificate files."""

import socket
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send
from web_tls import write_certificate

from mm2slo_core.config.exporter_settings import Listen
from mm2slo_web.access_files import certificate_files
from mm2slo_web.web_config import TlsServerConfig
from mm2slo_web.web_server import WebServer, bind


async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise NotImplementedError


def test_waiting_for_a_server_that_ended_by_itself_raises_error() -> None:
    server = WebServer(app, bind(Listen("127.0.0.1", 0), "listen"))
    with server:
        server.wait(0)
        server._server.should_exit = True
        with pytest.raises(RuntimeError, match="the web server has ended"):
            server.wait()


def test_closing_a_server_that_was_not_started_frees_its_port() -> None:
    server = WebServer(app, bind(Listen("127.0.0.1", 0), "listen"))
    server.close()
    bind(server.address, "listen").close()


def test_changed_certificate_applies_to_the_next_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_certificate(tmp_path)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    files = certificate_files(TlsServerConfig(cert_file=str(cert), key_file=str(key)))
    before = files.current()
    assert files.current() is before
    cert.write_text("half a certificate")
    assert files.current() is files.current() is before
    assert caplog.text.count("keeping the previous TLS and access rules: cannot use") == 1
    write_certificate(tmp_path)
    assert files.current().tls not in {None, before.tls}


async def empty_page(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-length", b"0"), (b"connection", b"keep-alive")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body"})


@pytest.mark.parametrize(
    ("framing", "responses"),
    [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 1),
        ("transfer-encoding: chunked\r\ncontent-length: 0", 1),
        ("Transfer-Encoding: chunked", 2),
    ],
)
def test_connection_is_closed_after_a_request_with_two_lengths(
    framing: str, responses: int
) -> None:
    requests = (
        f"GET / HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    with WebServer(empty_page, bind(Listen("127.0.0.1", 0), "listen")) as server:
        address = ("127.0.0.1", server.address.port)
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(requests.encode())
            received = b""
            while received.count(b"HTTP/1.1 200") < 2 and (part := connection.recv(4096)):
                received += part
    assert received.count(b"HTTP/1.1 200") == responses
    assert (b"connection: close\r\n" in received) is (responses == 1)
