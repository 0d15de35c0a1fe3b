"""Scrapes over real connections: what is sent, what is read, and how each failure is told."""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trustme
from recorded import AVAILABILITY, OPENMETRICS, exposition
from recorded.serving import Serving

from mm2slo_core.reporting.history import Tally
from mm2slo_report.recording.scraping import ScrapeError, Scraper, Target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = exposition({AVAILABILITY: (3, 4, 1)}, others=2000)


@pytest.fixture
def exporter() -> Iterator[Serving]:
    with Serving(body=PAGE) as serving:
        yield serving


def problem(target: Target, **limits: float) -> str:
    scraper = Scraper(
        target, timeout=limits.get("timeout", 10), largest=int(limits.get("largest", 1e9))
    )
    try:
        with pytest.raises(ScrapeError) as raised:
            scraper.scrape()
    finally:
        scraper.close()
    return str(raised.value)


def scraped(target: Target) -> Tally:
    scraper = Scraper(target)
    try:
        return scraper.scrape().tallies[AVAILABILITY]
    finally:
        scraper.close()


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("piece", [1 << 20, 100, 1])
def test_reads_the_page_however_it_comes(exporter: Serving, coding: str, piece: int) -> None:
    exporter.body = PAGE if piece > 1 else exposition({AVAILABILITY: (3, 4, 1)})
    exporter.compressed, exporter.piece = coding == "gzip", piece
    exporter.content_type = OPENMETRICS
    assert scraped(Target.at(exporter.address + "/")) == Tally(3, 4, 1)
    (asked,) = exporter.asked
    assert asked["accept-encoding"] == "gzip"
    assert asked["accept"].startswith("application/openmetrics-text;version=1.0.0")
    assert "authorization" not in asked


def test_sends_a_token_that_is_read_anew_each_time(exporter: Serving, tmp_path: Path) -> None:
    token = tmp_path / "token"
    scraper = Scraper(Target.at(exporter.address, token_file=token))
    for secret in ("first", "second"):
        token.write_text(secret + "\n", encoding="utf-8")
        scraper.scrape()
    scraper.close()
    assert [each["authorization"] for each in exporter.asked] == ["Bearer first", "Bearer second"]


def test_sends_a_login_in_utf_8(exporter: Serving, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("pässwort", encoding="utf-8")
    scraped(Target(url=f"{exporter.address}/metrics", user="prüfer", password_file=password))
    expected = b64encode("prüfer:pässwort".encode()).decode()
    assert exporter.asked[0]["authorization"] == f"Basic {expected}"


def test_no_login_of_the_environment_is_sent(
    exporter: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert scraped(Target.at(exporter.address)) == Tally(3, 4, 1)
    assert "authorization" not in exporter.asked[0]


def test_tls_is_trusted_by_the_named_authority_alone(tmp_path: Path) -> None:
    authority, ca_file = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with Serving(body=PAGE, tls=tls) as exporter:
        assert scraped(Target.at(exporter.address, ca_file=ca_file)) == Tally(3, 4, 1)
        text = problem(Target.at(exporter.address))
    assert text.startswith("the certificate is not trusted, or TLS failed: ")
    assert "certificate verify failed" in text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": 401}, "the answer is HTTP 401: it asks for a login"),
        ({"status": 503}, "the answer is HTTP 503"),
        ({"status": 302, "location": "http://127.0.0.1:1/"}, "HTTP 302: it leads elsewhere"),
        ({"content_type": "text/html; charset=utf-8"}, "the answer says it is text/html"),
        ({"body": "hello\n"}, "the page cannot be read: a line is no sample: 'hello'"),
        ({"body": PAGE[:-6], "content_type": OPENMETRICS}, "the page ends too early"),
        ({"missing": 10}, "the answer broke off"),
        ({"body": b"no gzip", "compressed": False}, "cannot be read"),
    ],
)
def test_tells_what_is_wrong_with_an_answer(
    exporter: Serving, changes: dict[str, object], told: str
) -> None:
    for name, value in changes.items():
        setattr(exporter, name, value)
    assert told in problem(Target.at(exporter.address))


def test_a_page_is_too_large_by_what_it_unpacks_to(exporter: Serving) -> None:
    exporter.body, exporter.compressed = "# " + "x" * 500 + "\n", True
    exporter.body *= 10_000
    assert problem(Target.at(exporter.address), largest=1e6) == (
        "the page is larger than 1000000 bytes"
    )


def test_does_not_wait_for_an_answer_that_does_not_come(exporter: Serving) -> None:
    exporter.hold = threading.Event()
    assert problem(Target.at(exporter.address), timeout=0.05) == "it did not answer within 0.05 s"


def test_does_not_wait_for_the_rest_of_a_page_either() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = Target.at(f"http://127.0.0.1:{listener.getsockname()[1]}")
        ended = threading.Event()

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n# \n")
                with suppress(OSError):  # it has had enough
                    while not ended.wait(0.01):
                        connection.sendall(b"# still here\n")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        told = problem(target, timeout=0.2)
        ended.set()
        thread.join()
    assert told == "it did not answer within 0.2 s"


def test_tells_that_nobody_is_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert problem(Target.at(address)) == "there is no connection: Connection refused"
    missing = tmp_path / "token"
    told = problem(Target.at(address, token_file=missing))
    assert told == f"a file cannot be read: {missing}: No such file or directory"


def test_a_secret_that_no_header_can_hold_is_not_told(exporter: Serving, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("sec\nret", encoding="utf-8")
    told = problem(Target.at(exporter.address, token_file=token))
    assert told == "the request cannot be made: a secret or the address holds forbidden characters"
    token.write_bytes(b"\xff\xfe")
    told = problem(Target.at(exporter.address, token_file=token))
    assert told == "a file with a secret is no UTF-8 text"


def test_a_replica_is_named_without_its_login() -> None:
    target = Target.at("https://me:secret@exporter.example:9469/under/")
    assert target.name == "https://exporter.example:9469/under/metrics"
