"""Key and certificate of a lab broker, created with the JDK's keytool."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from mm2slo_lab.lab_errors import LabError

STORE_PASSWORD = "lab-store"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PKCS#12 keystore of the broker, and its certificate (PEM) for clients."""

    keystore: Path
    ca_file: Path


def tls_files(directory: Path) -> TlsFiles:
    """Return the paths of a broker's files."""
    return TlsFiles(directory / "keystore.p12", directory / "ca.pem")


def create(java: str, directory: Path) -> TlsFiles:
    """Create a self-signed certificate for 127.0.0.1, valid for a year.

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
    result = subprocess.run(
        [str(keytool), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    if result.returncode != 0:
        output = (result.stdout + result.stderr).strip()
        raise LabError(f"{keytool} {arguments[0]} failed: {output}")
