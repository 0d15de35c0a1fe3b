"""Scrapes over real connections: requests, responses and error messages."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from recorder_fakes import AVAILABILITY, OPENMETRICS, exposition
from recorder_fakes.fake_exporter import FakeExporter

from mm2slo_core.reporting.step_counts import Tally
from mm2slo_report.recording.exporter_scraper import ScrapeError, Scraper, ScrapeTarget

PAGE = exposition({AVAILABILITY: (3, 4, 1)}, others=2000)


@pytest.fixture
def exporter() -> Iterator[FakeExporter]:
    with FakeExporter(body=PAGE) as serving:
        yield serving


def scrape_error(target: ScrapeTarget, **limits: float) -> str:
    scraper = Scraper(
        target, timeout=limits.get("timeout", 10), max_bytes=int(limits.get("max_bytes", 1e9))
    )
    try:
        with pytest.raises(ScrapeError) as raised:
            scraper.scrape()
    finally:
        scraper.close()
    return str(raised.value)


def scrape_tally(target: ScrapeTarget) -> Tally:
    scraper = Scraper(target)
    try:
        return scraper.scrape().tallies[AVAILABILITY]
    finally:
        scraper.close()


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("piece", [1 << 20, 100, 1])
def test_scrape_reads_pages_of_any_encoding_and_chunk_size(
    exporter: FakeExporter, coding: str, piece: int
) -> None:
    exporter.body = PAGE if piece > 1 else exposition({AVAILABILITY: (3, 4, 1)})
    exporter.compressed, exporter.piece = coding == "gzip", piece
    exporter.content_type = OPENMETRICS
    assert scrape_tally(ScrapeTarget.at(exporter.address + "/")) == Tally(3, 4, 1)
    (asked,) = exporter.requests
    assert asked["accept-encoding"] == "gzip"
    assert asked["accept"].startswith("application/openmetrics-text;version=1.0.0")
    assert "authorization" not in asked


def test_scrape_reads_the_token_file_each_time(exporter: FakeExporter, tmp_path: Path) -> None:
    token = tmp_path / "token"
    scraper = Scraper(ScrapeTarget.at(exporter.address, token_file=token))
    for secret in ("first", "second"):
        token.write_text(secret + "\n", encoding="utf-8")
        scraper.scrape()
    scraper.close()
    assert [each["authorization"] for each in exporter.requests] == [
        "Bearer first",
        "Bearer second",
    ]


def test_scrape_ignores_netrc_and_proxy_settings(
    exporter: FakeExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert scrape_tally(ScrapeTarget.at(exporter.address)) == Tally(3, 4, 1)
    assert "authorization" not in exporter.requests[0]


def test_scrape_tls_trusts_only_the_given_ca(tmp_path: Path) -> None:
    authority, ca_file = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with FakeExporter(body=PAGE, tls=tls) as exporter:
        assert scrape_tally(ScrapeTarget.at(exporter.address, ca_file=ca_file)) == Tally(3, 4, 1)
        text = scrape_error(ScrapeTarget.at(exporter.address))
    assert text.startswith("the certificate is not trusted, or TLS failed: ")
    assert "certificate verify failed" in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": 401}, "HTTP 401: authentication required"),
        ({"status": 503}, "HTTP 503"),
        (
            {"status": 302, "location": "http://127.0.0.1:1/"},
            "HTTP 302: redirects are not followed",
        ),
        ({"content_type": "text/html; charset=utf-8"}, "unexpected content type text/html"),
        ({"body": "hello\n"}, "invalid page: invalid sample line: 'hello'"),
        ({"body": PAGE[:-6], "content_type": OPENMETRICS}, "the page is truncated"),
        ({"missing": 10}, "the response was truncated"),
        ({"body": b"no gzip", "compressed": False}, "invalid page"),
    ],
)
def test_scrape_invalid_response_raises_scrape_error(
    exporter: FakeExporter, changes: dict[str, object], expected: str
) -> None:
    for name, value in changes.items():
        setattr(exporter, name, value)
    assert expected in scrape_error(ScrapeTarget.at(exporter.address))


def test_scrape_page_too_large_when_decompressed_is_refused(exporter: FakeExporter) -> None:
    exporter.body, exporter.compressed = "# " + "x" * 500 + "\n", True
    exporter.body *= 10_000
    assert scrape_error(ScrapeTarget.at(exporter.address), max_bytes=1e6) == (
        "the page is larger than 1000000 bytes"
    )


def test_scrape_without_response_times_out(exporter: FakeExporter) -> None:
    exporter.hold = threading.Event()
    assert (
        scrape_error(ScrapeTarget.at(exporter.address), timeout=0.05) == "no response within 0.05 s"
    )


def test_scrape_slow_page_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = ScrapeTarget.at(f"http://127.0.0.1:{listener.getsockname()[1]}")
        ended = threading.Event()

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n# \n")
                with suppress(OSError):  # the scraper closed the connection
                    while not ended.wait(0.01):
                        connection.sendall(b"# still here\n")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        text = scrape_error(target, timeout=0.2)
        ended.set()
        thread.join()
    assert text == "no response within 0.2 s"


def test_scrape_connection_refused_and_missing_token_file_are_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert scrape_error(ScrapeTarget.at(address)) == "connection failed: Connection refused"
    missing = tmp_path / "token"
    text = scrape_error(ScrapeTarget.at(address, token_file=missing))
    assert text == f"cannot read a file: {missing}: No such file or directory"


def test_scrape_invalid_secret_is_not_shown(exporter: FakeExporter, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("sec\nret", encoding="utf-8")
    text = scrape_error(ScrapeTarget.at(exporter.address, token_file=token))
    assert text == "invalid request: a secret or the address contains forbidden characters"
    token.write_bytes(b"\xff\xfe")
    text = scrape_error(ScrapeTarget.at(exporter.address, token_file=token))
    assert text == "a file with a secret is not UTF-8 text"


def test_target_name_omits_credentials() -> None:
    target = ScrapeTarget.at("https://me:secret@exporter.example:9469/under/")
    assert target.name == "https://exporter.example:9469/under/metrics"
