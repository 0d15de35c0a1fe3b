"""Slow, silent, malformed and numerous clients do not block others."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from web_tls import trusting, write_config

from mm2slo_core.catalogue.flow_metrics import REPLICATION_LAG_RECORDS
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.exposition_family import Family
from mm2slo_exporter.exposition_renderer import Renderer, Snapshot
from mm2slo_exporter.web.exporter_app import exporter_server
from mm2slo_web.web_server import ClientLimits

CLOSE = b"Connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n", b"505"),
        (b"GET /metrics HTTP/x\r\n\r\n", b"400"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000, b"431"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 150 + b"\r\n", b"431"),
    ],
    ids=lambda each: each[:24] if len(each) > 3 else each,
)
def test_what_cannot_be_read_is_refused_in_plain_text(
    serve: Any, sent: bytes, status: bytes
) -> None:
    client = serve()
    said = client.exchange(sent)
    assert said.startswith(b"HTTP/1.1 " + status + b" ")
    assert b"connection: close\r\n" in said
    assert b"content-type: text/plain; charset=utf-8\r\n" in said
    assert b"nonsense" not in said
    assert client.site.calls == []


def test_a_request_in_a_body_is_not_a_request(serve: Any) -> None:
    client = serve()
    inner = b"POST /-/reload HTTP/1.1\r\nHost: x\r\n\r\n"
    length = f"Content-Length: {len(inner)}\r\n\r\n".encode()
    for framing in (length, b"Transfer-Encoding: chunked\r\n\r\n"):
        said = client.exchange(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + framing + inner)
        assert said.count(b"HTTP/1.1") == 1
        assert b"connection: close\r\n" in said
    assert "reload" not in client.site.calls


def test_an_http_1_0_client_is_answered_and_let_go(serve: Any) -> None:
    said = serve().exchange(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert said.endswith(b"\r\n\r\nok\n")


def test_a_silent_client_is_cut_at_its_deadline(serve: Any) -> None:
    client = serve(limits=ClientLimits(request_seconds=0.2))
    start = time.monotonic()
    assert client.exchange(b"") == b""
    # The default deadline would be 10 s.
    assert 0.2 <= time.monotonic() - start < 9


def test_a_client_that_drips_is_cut_at_the_same_deadline(serve: Any) -> None:
    client = serve(limits=ClientLimits(request_seconds=1))
    with client.raw() as connection:
        connection.settimeout(0.02)
        start = time.monotonic()
        said = b""
        for byte in b"GET /metrics HTTP/1.1\r\nX-Slow: " + b"a" * 2000:
            connection.sendall(bytes([byte]))
            try:
                said = connection.recv(4096)
            except TimeoutError:
                continue
            break
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert 1 <= time.monotonic() - start < 9


def test_an_idle_connection_is_let_go(serve: Any) -> None:
    client = serve(limits=ClientLimits(idle_seconds=1))
    with client.raw() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        said = b""
        while part := connection.recv(4096):
            said += part
    assert said.count(b"HTTP/1.1 200 OK") == 1


def a_large_snapshot() -> Snapshot:
    series = [(("a->b", "a", "b", "t" * 200, str(n)), n) for n in range(60_000)]
    return Renderer().render([Family(REPLICATION_LAG_RECORDS, series)])


def test_a_client_that_does_not_read_is_cut(serve: Any, fake_site: Any) -> None:
    limits = ClientLimits(connections=1, send_seconds=0.3)
    client = serve(fake_site(newest=a_large_snapshot()), limits=limits)
    with client.raw() as stalled:
        stalled.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stalled.recv(4) == b"HTTP"  # it is being answered, so nothing makes room
        _until(lambda: client("/healthz").status == 200)


def health_of(connection: socket.socket) -> bytes:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    said = b""
    while not said.endswith(b"\r\n\r\nok\n"):
        part = connection.recv(4096)
        assert part, said
        said += part
    return said


def test_the_connection_that_is_idle_longest_makes_room(serve: Any) -> None:
    client = serve(limits=ClientLimits(connections=2))
    with client.raw() as oldest, client.raw() as newer:
        assert health_of(newer).startswith(b"HTTP/1.1 200 OK")
        assert client("/healthz").status == 200
        assert oldest.recv(4096) == b""
        assert health_of(newer).startswith(b"HTTP/1.1 200 OK")


def test_without_an_idle_connection_the_newest_is_turned_away(serve: Any, fake_site: Any) -> None:
    client = serve(fake_site(newest=a_large_snapshot()), limits=ClientLimits(connections=2))
    with client.raw() as one, client.raw() as other:
        for stalled in (one, other):
            stalled.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert stalled.recv(4) == b"HTTP"
        _until(lambda: client("/healthz").status == 503)
        answer = client("/healthz")
        assert (answer.status, answer.body) == (503, b"too many connections\n")
        assert answer.headers["retry-after"] == "1"
    _until(lambda: client("/healthz").status == 200)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_thousands_of_silent_and_trickling_clients_leave_room_for_a_scrape(
    serve: Any, tmp_path: Path, *, secure: bool
) -> None:
    client = serve(web_config=write_config(tmp_path) if secure else None)
    context = trusting() if secure else None
    # The start of a TLS record of 256 bytes, or of a request.
    trickle = b"\x16\x03\x01\x01\x00\x01" if secure else b"GET /metrics HTTP/1.1\r\n"
    with crowd(client, 1_000) as silent, crowd(client, 1_000) as trickling:
        for byte in trickle:
            assert client("/healthz", tls=context).status == 200
            assert client("/metrics", tls=context).body.endswith(b"mm2_exporter_series 2\n")
            for each in trickling:
                with suppress(OSError):  # it made room
                    each.send(bytes([byte]))
        # The newest of each kind are still connected.
        silent[-1].setblocking(False)
        trickling[-1].send(b"x")
        assert len(client.server._server.server_state.connections) <= ClientLimits().connections


@contextmanager
def crowd(client: Any, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(client.raw()) for _ in range(count)]


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if condition():
                return
        except OSError:  # turned away before the request was written
            pass
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_closing_ends_open_connections_at_once(serve: Any) -> None:
    client = serve()
    with client.raw() as connection:
        assert health_of(connection).startswith(b"HTTP/1.1 200 OK")
        connection.settimeout(60)  # an idle connection would stay for 120 s
        client.server.close()
        assert connection.recv(4096) == b""


def test_a_port_in_use_is_one_line_for_the_user(serve: Any) -> None:
    client = serve()
    taken = client.server.address
    with pytest.raises(UserError) as refused:
        exporter_server(taken, client.site)
    assert str(refused.value) == (
        f"cannot listen on {taken}: the port is in use; "
        "stop the other process or set exporter.listen to a free port"
    )
    assert refused.value.exit_code == 2


def test_an_address_of_another_machine_is_one_line_for_the_user(fake_site: Any) -> None:
    with pytest.raises(UserError, match="this machine does not have that address"):
        exporter_server(Listen("192.0.2.1", 0), fake_site())


def test_an_empty_host_is_every_interface(fake_site: Any) -> None:
    with exporter_server(Listen("", 0), fake_site()) as server:
        port = server.address.port
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"POST /-/reload HTTP/1.1\r\nHost: x\r\n" + CLOSE)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
