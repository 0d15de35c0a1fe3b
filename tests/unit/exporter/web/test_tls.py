"""TLS and client certificates, with certificates made for the test."""

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from web_tls import CA, CLIENT_CA, trusting, write_certificate, write_config

# Which of these a client sees depends on how far it was when the server closed.
REFUSED = r"(?i)alert|closed|eof|reset|broken pipe"


def test_a_scrape_over_tls(serve: Any, tmp_path: Path) -> None:
    client = serve(web_config=write_config(tmp_path))
    assert client.server.url == f"https://{client.server.address}"
    answer = client("/metrics", tls=trusting())
    assert answer.status == 200
    assert answer.body.endswith(b"mm2_exporter_series 2\n")


def test_plain_http_to_a_tls_port_gets_nothing(serve: Any, tmp_path: Path) -> None:
    client = serve(web_config=write_config(tmp_path))
    said = client.exchange(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"mm2_" not in said
    assert client.site.calls == []


@pytest.mark.parametrize(
    ("version", "accepted"),
    [(ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)],
)
def test_the_least_version_holds(
    serve: Any,
    tmp_path: Path,
    version: ssl.TLSVersion,
    accepted: bool,
) -> None:
    client = serve(web_config=write_config(tmp_path, min_version="TLS13"))
    context = trusting()
    context.maximum_version = version
    if accepted:
        assert client("/healthz", tls=context).status == 200
    else:
        with pytest.raises(ssl.SSLError):
            client("/healthz", tls=context)


def test_a_silent_client_does_not_hold_up_the_next(serve: Any, tmp_path: Path) -> None:
    client = serve(web_config=write_config(tmp_path))
    with client.raw(), client.raw():
        assert client("/healthz", tls=trusting()).status == 200


def required(folder: Path, **more: object) -> Path:
    return write_config(
        folder, client_ca_file="clients.pem", client_auth_type="RequireAndVerifyClientCert", **more
    )


def test_a_required_client_certificate_is_verified(serve: Any, tmp_path: Path) -> None:
    client = serve(web_config=required(tmp_path))
    known = CLIENT_CA.issue_cert("prometheus.example")
    assert client("/healthz", tls=trusting(known)).status == 200
    for stranger in (None, CA.issue_cert("prometheus.example")):
        with pytest.raises(OSError, match=REFUSED):
            client("/healthz", tls=trusting(stranger))


def test_a_certificate_given_freely_is_verified_too(serve: Any, tmp_path: Path) -> None:
    file = write_config(
        tmp_path, client_ca_file="clients.pem", client_auth_type="VerifyClientCertIfGiven"
    )
    client = serve(web_config=file)
    assert client("/healthz", tls=trusting()).status == 200
    with pytest.raises(OSError, match=REFUSED):
        client("/healthz", tls=trusting(CA.issue_cert("prometheus.example")))


def test_only_the_names_that_are_allowed_are_served(serve: Any, tmp_path: Path) -> None:
    client = serve(web_config=required(tmp_path, client_allowed_sans=["prometheus.example"]))
    named = CLIENT_CA.issue_cert("other.example", "prometheus.example")
    assert client("/healthz", tls=trusting(named)).status == 200
    with pytest.raises(OSError, match=REFUSED):
        client("/healthz", tls=trusting(CLIENT_CA.issue_cert("other.example")))


def served_certificate(client: Any) -> bytes:
    with (
        client.raw() as plain,
        trusting().wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        found = secure.getpeercert(binary_form=True)
        assert found is not None
        return found


def test_a_renewed_certificate_is_served_to_the_next_connection(serve: Any, tmp_path: Path) -> None:
    client = serve(web_config=write_config(tmp_path))
    first = served_certificate(client)
    renewed = write_certificate(tmp_path)
    assert renewed != first
    assert served_certificate(client) == renewed


def test_a_half_written_certificate_leaves_the_old_one_in_force(
    serve: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = serve(web_config=write_config(tmp_path))
    first = served_certificate(client)
    (tmp_path / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    with caplog.at_level(logging.WARNING):
        assert served_certificate(client) == first
        assert served_certificate(client) == first
    assert caplog.text.count("keeping the previous TLS and access rules") == 1
    renewed = write_certificate(tmp_path)
    assert served_certificate(client) == renewed
