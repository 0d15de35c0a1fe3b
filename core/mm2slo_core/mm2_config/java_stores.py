"""Reads trust stores and key stores of Kafka's Java clients: PKCS12 and PEM bytes to PEM text.

The format is recognised by content, as Java does: many files named `.jks` are PKCS12. PEM as
Kafka's `DefaultSslEngineFactory` reads it (KIP-651), also when it was written on one line.
"""

from __future__ import annotations

import base64
import re
import shlex
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_PEM: Final = re.compile(r"-----BEGIN\s+([A-Z0-9 ]+?)-+\s*([A-Za-z0-9+/=\s]+?)-+END\s+\1-+")
_JKS: Final = b"\xfe\xed\xfe\xed"


class UnusableError(ValueError):
    """Settings that cannot be used: name of the check, what, what to do, and the setting."""

    def __init__(self, check: str, what: str, action: str, key: str | None = None) -> None:
        super().__init__(check, what, action)
        self.check, self.what, self.action, self.key = check, what, action, key


@dataclass(frozen=True, slots=True)
class Store:
    """All certificates; a private key as PEM, if any; its certificate and the issuers of it."""

    certificates: Sequence[x509.Certificate] = ()
    key: str | None = field(default=None, repr=False)
    chain: Sequence[x509.Certificate] = ()

    @property
    def roots(self) -> list[x509.Certificate]:
        return [each for each in self.certificates if each.subject == each.issuer]


def to_pem(certificates: Sequence[x509.Certificate]) -> str | None:
    """The PEM text of *certificates*; None without any."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates) or None


def read_store(content: bytes, path: str, password: str | None, key_password: str | None) -> Store:
    """Read the bytes that were found at *path*; raises UnusableError."""
    if b"-----BEGIN" in content:
        return read_pem(content.decode("utf-8", "replace"), path, key_password)
    if content.startswith(_JKS):
        source, target = shlex.quote(path), shlex.quote(f"{path.removesuffix('.jks')}.p12")
        action = f"convert it: keytool -importkeystore -srckeystore {source} -srcstoretype JKS"
        action += f" -destkeystore {target} -deststoretype PKCS12"
        raise UnusableError(
            "unsupported-store", f"{path} is a JKS store, which only Java reads", action
        )
    try:
        found = pkcs12.load_pkcs12(content, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        how = "with its password" if password else "without a password"
        what = f"{path} cannot be read as PKCS12 {how}, and is not PEM"
        action = "check the password of the store, and that the file is a PKCS12 or PEM store"
        raise UnusableError("store-unreadable", what, action) from None
    entries = ([] if found.cert is None else [found.cert]) + found.additional_certs
    return _store([each.certificate for each in entries], found.key, None, path)


def read_pem(text: str, place: str, key_password: str | None) -> Store:
    """Read PEM blocks; an encrypted key stays encrypted. Raises UnusableError."""
    certificates, key, encrypted = [], None, None
    what = "a damaged certificate"
    try:
        for label, body in _PEM.findall(text):
            content = textwrap.fill("".join(body.split()), 64)
            if label == "CERTIFICATE":
                certificates.append(x509.load_der_x509_certificate(base64.b64decode(content)))
            elif label.endswith("PRIVATE KEY") and key is None:
                what = f"a key that cannot be read {'with' if key_password else 'without'} password"
                pem = f"-----BEGIN {label}-----\n{content}\n-----END {label}-----\n"
                password = key_password.encode() if key_password else None
                key = load_pem_private_key(pem.encode(), password)
                encrypted = pem if key_password else None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        action = "replace the certificate or key; set ssl.key.password if, and only if, it is "
        raise UnusableError(
            "store-unreadable", f"{place} has {what}", f"{action}encrypted"
        ) from None
    return _store(certificates, key, encrypted, place)


def _store(
    certificates: Sequence[x509.Certificate], key: PrivateKeyTypes | None,
    encrypted: str | None, place: str,
) -> Store:  # fmt: skip
    public = None if key is None else key.public_key()
    found = next((each for each in certificates if public in (None, each.public_key())), None)
    if found is None:
        what = "no certificate" if key is None else "a private key without its certificate"
        raise UnusableError("store-without-certificate", f"{place} has {what}", "add it")
    if key is None:
        return Store(certificates)
    chain = []
    while found is not None:
        chain.append(found)
        issuers = (each for each in certificates if each.subject == chain[-1].issuer)
        found = next((each for each in issuers if each not in chain), None)
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Store(certificates, encrypted or plain.decode(), chain)
