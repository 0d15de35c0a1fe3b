"""Connects to brokers step by step, so that a failure is reported with its stage."""

from __future__ import annotations

import socket
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mm2slo_core.connection_checks.check_result import CheckResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

_TIMEOUT_SECONDS = 5.0
_RENEW_DAYS = 30
_REMEDIES = {
    "name-resolution": "correct bootstrap_servers, or advertised.listeners of the broker",
    "connection": "check that a broker listens there, and firewalls in between",
    "tls": "check that this listener uses TLS, and the client certificates it requires",
}
_OTHER_NAME = "connect by a name in the broker's certificate, or add this name to it"
# Codes of OpenSSL's X509_verify_cert: expired, wrong host name, wrong IP address.
_VERIFY_REMEDIES = {10: "renew the broker's certificate", 62: _OTHER_NAME, 64: _OTHER_NAME}
_UNTRUSTED = "set tls.ca_file to the CA that issued the broker's certificate"


def check_listeners(
    alias: str, servers: Iterable[str], properties: Mapping[str, str], now: datetime
) -> Iterator[CheckResult]:
    """A result for the client certificate, if any, and one for each of *servers* (`host:port`).

    *properties* are librdkafka's. Expiry covers the broker's certificate, and its issuers as far as
    they are in the configured CA file.
    """
    context, authorities = None, []
    if properties.get("security.protocol", "").upper().endswith("SSL"):
        try:
            authorities, client = (
                _certificates(properties, name) for name in ("ca", "certificate")
            )
            context = _context(properties, authorities)
        except (OSError, ValueError) as error:
            finding = f"the configured certificates or key cannot be used: {error}"
            yield CheckResult(alias, "tls", "fix", finding, "correct security.tls of this cluster")
            return
        if client:
            yield _expiry(alias, "client certificate", client, now)
    for server in servers:
        yield _check_listener(alias, server, context, authorities, now)


def _check_listener(
    alias: str,
    server: str,
    context: ssl.SSLContext | None,
    authorities: list[x509.Certificate],
    now: datetime,
) -> CheckResult:
    host, _, port = server.rpartition(":")
    host, stage = host.strip("[]"), "connection"
    try:
        with socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as connection:
            if context is None:
                return CheckResult(alias, stage, "ok", f"{server} accepts connections")
            stage = "tls"
            with context.wrap_socket(connection, server_hostname=host) as tls:
                chain = [x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")]
    except OSError as error:
        stage = "name-resolution" if isinstance(error, socket.gaierror) else stage
        reason, remedy = error.strerror or str(error), _REMEDIES[stage]
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"certificate refused, {error.verify_message}"
            remedy = _VERIFY_REMEDIES.get(error.verify_code, _UNTRUSTED)
        return CheckResult(alias, stage, "fix", f"{server}: {stage} failed: {reason}", remedy)
    while issuers := [a for a in authorities if a.subject == chain[-1].issuer and a not in chain]:
        chain.append(issuers[0])
    return _expiry(alias, f"{server}: certificate chain", chain, now)


def _expiry(
    alias: str, what: str, certificates: list[x509.Certificate], now: datetime
) -> CheckResult:
    first = min(certificates, key=lambda each: each.not_valid_after_utc)
    end = first.not_valid_after_utc
    finding = f"{what} is valid until {end:%Y-%m-%d} ({(end - now).days} days)"
    if (end - now).days < _RENEW_DAYS:
        remedy = f"renew {first.subject.rfc4514_string()} before that day"
        return CheckResult(alias, "certificate-expiry", "fix", finding, remedy)
    return CheckResult(alias, "certificate-expiry", "ok", finding)


def _context(properties: Mapping[str, str], authorities: list[x509.Certificate]) -> ssl.SSLContext:
    """As librdkafka would connect, with its defaults."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    identification = properties.get("ssl.endpoint.identification.algorithm")
    context.check_hostname = identification != "none"
    if authorities:
        found = b"".join(each.public_bytes(Encoding.DER) for each in authorities)
        context.load_verify_locations(cadata=found)
    else:
        context.load_default_certs()
    if certificate := _pem(properties, "certificate"):
        # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
        password = properties.get("ssl.key.password", "")
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + _pem(properties, "key"))
            both.flush()
            context.load_cert_chain(both.name, password=password)
    return context


def _certificates(properties: Mapping[str, str], name: str) -> list[x509.Certificate]:
    pem = _pem(properties, name)
    return x509.load_pem_x509_certificates(pem) if pem else []


def _pem(properties: Mapping[str, str], name: str) -> bytes:
    """The content of librdkafka's `ssl.<name>.pem` or of the file `ssl.<name>.location`."""
    if path := properties.get(f"ssl.{name}.location"):
        return Path(path).read_bytes()
    return properties.get(f"ssl.{name}.pem", "").encode()
