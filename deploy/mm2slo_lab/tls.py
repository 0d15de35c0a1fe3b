"""A key and a certificate for a lab broker, made by the JDK's keytool."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from mm2slo_lab.errors import LabError

STORE_PASSWORD = "lab-store"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A PKCS#12 keystore for the broker, its certificate (PEM) for whoever trusts it."""

    keystore: Path
    ca_file: Path


def tls_files(directory: Path) -> TlsFiles:
    """Where the files of a broker are."""
    return TlsFiles(directory / "keystore.p12", directory / "ca.pem")


def create(java: str, directory: Path) -> TlsFiles:
    """A self-signed certificate for 127.0.0.1, valid for a year.

    Raises LabError when keytool fails.
    """
    files = tls_files(directory)
    store = ("-keystore", str(files.keystore), "-storepass", STORE_PASSWORD, "-alias", "broker")
    _keytool(
        java,
        *("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12"),
        *("-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1,dns:localhost"),
        *("-validity", "365", *store),
    )
    _keytool(java, "-exportcert", "-rfc", "-file", str(files.ca_file), *store)
    return files


def _keytool(java: str, *arguments: str) -> None:
    keytool = Path(java).resolve().with_name("keytool")
    answer = subprocess.run(
        [str(keytool), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    if answer.returncode != 0:
        said = (answer.stdout + answer.stderr).strip()
        raise LabError(f"{keytool} {arguments[0]} failed: {said}")
