"""Random secret files of docker-compose.yml."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mm2slo_cli.generated_files import write_file

if TYPE_CHECKING:
    from pathlib import Path

_MODE: Final = 0o440
_OWNER_ONLY: Final = 0o400
# libpq ignores what its group may read, and `mm2slo logship check` reports it.
_PRIVATE: Final = {"pgpass", "splunk-hec-token"}
_VALID: Final = timedelta(days=3650)
_CA_USAGE: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def create_secret_files(folder: Path, broker: str, splunk: str, slack_url: str) -> list[str]:
    """Write those files that *folder* lacks; returns their names.

    *broker* and *splunk* are the host names in their certificates. Files that belong together are
    written together. Raises UserError.
    """
    token, database = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    digest = hashlib.sha256(token.encode()).hexdigest()
    certificate, authority = _tls_files(broker)
    splunk_certificate, splunk_authority = _tls_files(splunk)
    groups = (
        {"us-password": secrets.token_urlsafe(32)},
        {"us-broker.pem": certificate, "us-ca.pem": authority},
        {"report-token": token, "report-tokens": f"{digest} read demo\n"},
        {"grafana-password": secrets.token_urlsafe(32)},
        {"postgres-password": database, "pgpass": f"postgres:*:*:*:{database}\n"},
        {"slack-webhook-url": slack_url},
        {"splunk-hec-token": str(uuid.uuid4())},
        {"splunk.pem": splunk_certificate, "splunk-ca.pem": splunk_authority},
    )
    written = []
    for group in groups:
        if all((folder / name).exists() for name in group):
            continue
        for name, text in group.items():
            path = folder / name
            path.unlink(missing_ok=True)
            write_file(path, text)
            path.chmod(_OWNER_ONLY if name in _PRIVATE else _MODE)
            written.append(name)
    return written


def _tls_files(host: str) -> tuple[str, str]:
    """Return a key with its certificate for *host*, and the CA's certificate, in PEM format.

    With all that RFC 5280 requires: Python verifies strictly since 3.13.
    """
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = _name("mm2slo demo CA")
    names = x509.SubjectAlternativeName([x509.DNSName(host)])
    authority = _certificate(ca_name, ca_key, ca_name, ca_key)
    issued = _certificate(_name(host), key, ca_name, ca_key).add_extension(names, critical=False)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem += issued.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM)
    signed = authority.add_extension(_CA_USAGE, critical=True).sign(ca_key, hashes.SHA256())
    return pem.decode(), signed.public_bytes(Encoding.PEM).decode()


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    constraints = x509.BasicConstraints(ca=key is issuer_key, path_length=None)
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(constraints, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(by, critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
