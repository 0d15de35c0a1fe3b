"""Each stage of a connection to a broker, against local listeners."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from mm2slo_core.kafka_permissions import CheckResult
from mm2slo_kafka.cluster_inspection import check_listeners

NOW = datetime(2026, 5, 1, tzinfo=UTC)
YEARS_LATER = datetime(2037, 1, 1, tzinfo=UTC)
CA = trustme.CA()
AUTHORITY = CA.cert_pem.bytes().decode()
OTHER_CA = trustme.CA()


@contextmanager
def listener(certificate: trustme.LeafCert | None) -> Iterator[str]:
    """Serves connections with *certificate*; without one, closes them as Kafka closes nonsense."""
    server = socket.create_server(("127.0.0.1", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate is not None:
        certificate.configure_cert(context)

    def serve() -> None:
        while True:
            try:
                connection, _address = server.accept()
            except OSError:
                return
            with connection:
                try:
                    if certificate is None:
                        connection.recv(1)
                    else:
                        context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def leaf(
    *names: str, ca: trustme.CA = CA, not_after: datetime | None = YEARS_LATER
) -> trustme.LeafCert:
    return ca.issue_cert(*names or ("127.0.0.1",), not_after=not_after)


def check(server: str, *, now: datetime = NOW, **changed: Any) -> list[CheckResult]:
    properties = {"security.protocol": "SASL_SSL", "ssl.ca.pem": AUTHORITY}
    names = {name.replace("_", "."): value for name, value in changed.items()}
    return list(check_listeners("us", [server], properties | names, now))


def finding(server: str, result: CheckResult) -> tuple[str, str, str]:
    return result.check, result.state, result.finding.replace(server, "SERVER")


def test_valid_certificate_reports_its_expiry() -> None:
    with listener(leaf()) as server:
        (result,) = check(server)
    assert finding(server, result) == (
        "certificate-expiry",
        "ok",
        "SERVER: certificate chain is valid until 2037-01-01 (3898 days)",
    )


def test_certificate_that_expires_soon_is_to_be_renewed() -> None:
    with listener(leaf(not_after=YEARS_LATER)) as server:
        (result,) = check(server, now=YEARS_LATER - timedelta(days=29))
    assert finding(server, result) == (
        "certificate-expiry",
        "fix",
        "SERVER: certificate chain is valid until 2037-01-01 (29 days)",
    )
    assert result.remedy.startswith("renew ")


REFUSED = {
    "unknown CA": (
        leaf(ca=OTHER_CA),
        "unable to get local issuer certificate",
        "set tls.ca_file to the CA that issued the broker's certificate",
    ),
    "other host name": (
        leaf("broker-1.example.com"),
        "IP address mismatch, certificate is not valid for '127.0.0.1'",
        "connect by a name in the broker's certificate, or add this name to it",
    ),
    "expired": (
        leaf(not_after=datetime(2020, 1, 1, tzinfo=UTC)),
        "certificate has expired",
        "renew the broker's certificate",
    ),
}


@pytest.mark.parametrize(("certificate", "reason", "remedy"), REFUSED.values(), ids=[*REFUSED])
def test_refused_certificate_is_reported_with_reason(
    certificate: trustme.LeafCert, reason: str, remedy: str
) -> None:
    with listener(certificate) as server:
        (result,) = check(server)
    assert finding(server, result)[:2] == ("tls", "fix")
    assert reason in result.finding
    assert result.remedy == remedy


def test_host_name_is_not_checked_if_verification_is_off() -> None:
    with listener(leaf("broker-1.example.com")) as server:
        (result,) = check(server, ssl_endpoint_identification_algorithm="none")
    assert result.state == "ok"


def test_plain_listener_where_tls_is_expected_is_a_tls_failure() -> None:
    with listener(None) as server:
        (result,) = check(server)
    assert finding(server, result)[:2] == ("tls", "fix")
    assert ": tls failed: " in result.finding


def test_plaintext_needs_a_connection_only() -> None:
    with listener(None) as server:
        (result,) = check(server, security_protocol="PLAINTEXT")
    assert finding(server, result) == ("connection", "ok", "SERVER accepts connections")


def test_closed_port_is_a_connection_failure() -> None:
    (result,) = check("127.0.0.1:1")
    assert (result.check, result.state, result.finding) == (
        "connection",
        "fix",
        "127.0.0.1:1: connection failed: Connection refused",
    )


def test_unknown_host_name_is_a_resolution_failure() -> None:
    (result,) = check("broker.invalid:9092")
    assert (result.check, result.state) == ("name-resolution", "fix")
    assert "broker.invalid:9092: name-resolution failed: " in result.finding


def test_client_certificate_is_presented_and_its_expiry_reported(tmp_path: Path) -> None:
    client = CA.issue_cert("app", not_after=YEARS_LATER)
    key = client.private_key_pem.bytes().decode()
    chain = client.cert_chain_pems[0].bytes().decode()
    chain_file = tmp_path / "client.pem"
    chain_file.write_text(chain, encoding="utf-8")
    by_content: dict[str, Any] = {"ssl_certificate_pem": chain, "ssl_key_pem": key}
    by_file: dict[str, Any] = {"ssl_certificate_location": str(chain_file), "ssl_key_pem": key}
    for given in (by_content, by_file):
        with listener(leaf()) as server:
            results = check(server, **given)
        assert [each.state for each in results] == ["ok", "ok"]
        assert results[0].finding == "client certificate is valid until 2037-01-01 (3898 days)"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ssl_ca_location": "/no/such/ca.pem"}, "No such file or directory"),
        ({"ssl_ca_pem": "not PEM"}, "Unable to load PEM file"),
        (
            {
                "ssl_certificate_pem": leaf().cert_chain_pems[0].bytes().decode(),
                "ssl_key_pem": leaf().private_key_pem.bytes().decode(),
            },
            "key values mismatch",
        ),
    ],
)
def test_unusable_certificates_are_reported_before_connecting(
    given: dict[str, Any], reason: str
) -> None:
    (result,) = check("127.0.0.1:1", **given)
    assert (result.check, result.state) == ("tls", "fix")
    assert reason in result.finding
    assert "BEGIN" not in result.finding
