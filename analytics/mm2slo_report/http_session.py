"""HTTP sessions for exporters and Prometheus: CA certificates and credentials."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import requests

if TYPE_CHECKING:
    from pathlib import Path


def open_session() -> requests.Session:
    """A session that ignores proxies and .netrc. Not thread-safe."""
    session = requests.Session()
    # A .netrc file or an environment proxy must not receive or replace our credentials.
    session.trust_env = False
    return session


def ca_certificates(ca_file: Path | None) -> str | bool:
    """The `verify` argument: *ca_file*, else the system's certificates, else those of requests."""
    if ca_file is not None:
        return str(ca_file)
    return ssl.get_default_verify_paths().cafile or True
