"""HTTP to exporters and Prometheus: whose certificates are trusted, and who gets our login."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import requests

if TYPE_CHECKING:
    from pathlib import Path


def session() -> requests.Session:
    """A session that the environment does not steer. Not for use from several threads."""
    made = requests.Session()
    # A .netrc or a proxy of the environment must not decide who gets our login.
    made.trust_env = False
    return made


def trusted(ca_file: Path | None) -> str | bool:
    """The CA certificates: those named, else the system's, else those that come with requests."""
    if ca_file is not None:
        return str(ca_file)
    return ssl.get_default_verify_paths().cafile or True
