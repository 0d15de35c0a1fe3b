"""The TLS and access rules in force: read at the start and when one of their files changes.

A change applies to the next connection. A file that became invalid is logged once, and what was in
force stays: a half-written file must neither open nor close the server.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from mm2slo_core.config.config_document import ConfigError, parse_document
from mm2slo_core.user_errors import UserError
from mm2slo_web.authenticator import Authenticator
from mm2slo_web.web_config import (
    ClientAuthType,
    TlsServerConfig,
    TlsVersion,
    WebConfig,
    parse_web_config,
)

Load: TypeAlias = Callable[[], tuple["WebAccess", tuple[Path, ...]]]
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebAccess:
    """What a connection needs: its TLS, its authentication, the headers of its responses."""

    authenticator: Authenticator
    tls: ssl.SSLContext | None = None
    allowed_names: tuple[str, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def allows(self, certificate: Mapping[str, Any] | None) -> bool:
        """Whether a verified client *certificate* has one of the allowed names, if any are set."""
        names = {str(name) for _, name in (certificate or {}).get("subjectAltName", ())}
        return not self.allowed_names or not names.isdisjoint(self.allowed_names)


OPEN: Final = WebAccess(Authenticator({}, ()))
"""Plain HTTP, open to everyone who can connect."""


class FileStamp(NamedTuple):
    """Changes when the file does, or when it is replaced."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, file: Path) -> FileStamp | None:
        """None for a file that cannot be found."""
        try:
            found = file.stat()
        except OSError:
            return None
        # Kubernetes updates a mounted secret by renaming a symbolic link: the file is then another
        # one, even if its size and time are the same.
        return cls(found.st_mtime_ns, found.st_size, found.st_ino)


class ReloadedAccess:
    """The newest valid access that *load* read, with the files it depends on. Thread-safe.

    Raises UserError if the first load does.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._access, files = load()
        self._stamps = {file: FileStamp.of(file) for file in files}

    def current(self) -> WebAccess:
        with self._lock:
            stamps = {file: FileStamp.of(file) for file in self._stamps}
            if stamps != self._stamps:
                self._stamps = stamps
                self._reload()
            return self._access

    def _reload(self) -> None:
        try:
            self._access, files = self._load()
        except UserError as error:
            _LOG.warning("keeping the previous TLS and access rules: %s", error)
            return
        # Stamps of before the load show a change during it.
        self._stamps = {file: self._stamps.get(file) or FileStamp.of(file) for file in files}
        _LOG.info("reloaded %s", ", ".join(map(str, files)))


def web_config_file(path: Path) -> ReloadedAccess:
    """Access from a web configuration file."""
    newest: Authenticator | None = None

    def load() -> tuple[WebAccess, tuple[Path, ...]]:
        nonlocal newest
        config = _read_web_config(path)
        tls = config.tls_server_config
        users, tokens = config.basic_auth_users, config.bearer_tokens_sha256
        access = WebAccess(
            Authenticator(users, tokens, newest),
            server_context(tls, path.parent) if tls else None,
            tls.client_allowed_sans if tls else (),
            tuple(
                (name.lower().encode(), value.encode())
                for name, value in config.http_server_config.headers.items()
            ),
        )
        newest = access.authenticator
        return access, (path, *(tls_files(tls, path.parent) if tls else ()))

    return ReloadedAccess(load)


def certificate_files(tls: TlsServerConfig) -> ReloadedAccess:
    """TLS without authentication."""
    return ReloadedAccess(
        lambda: (WebAccess(OPEN.authenticator, server_context(tls, Path())), tls_files(tls, Path()))
    )


def _read_web_config(path: Path) -> WebConfig:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read web configuration file {str(path)!r}: {error}; "
            "expected the file that exporter.web_config_file names"
        ) from error
    document = parse_document(text)
    if document.problems:
        raise ConfigError(str(path), document.problems)
    return parse_web_config(document.value, str(path), document.line_of)


_TLS_VERSIONS = {
    TlsVersion.TLS12: ssl.TLSVersion.TLSv1_2,
    TlsVersion.TLS13: ssl.TLSVersion.TLSv1_3,
}

_VERIFY_MODES = {
    ClientAuthType.NONE: ssl.CERT_NONE,
    ClientAuthType.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuthType.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(config: TlsServerConfig, folder: Path) -> ssl.SSLContext:
    """The context for *config*; relative paths start at *folder*, the configuration file's.

    Raises UserError when a file cannot be read or does not hold what it should.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _TLS_VERSIONS[config.min_version]
    context.maximum_version = _TLS_VERSIONS[config.max_version]
    context.set_alpn_protocols(["http/1.1"])
    cert_file, key_file = folder / config.cert_file, folder / config.key_file
    try:
        # The empty password makes an encrypted key an error instead of a question on the terminal.
        context.load_cert_chain(cert_file, key_file, password="")
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot use certificate {str(cert_file)!r} with key {str(key_file)!r}: {error}; "
            "expected a PEM certificate chain and its unencrypted PEM key"
        ) from error
    if config.client_ca_file is not None:
        ca_file = folder / config.client_ca_file
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ValueError) as error:
            raise UserError(
                f"cannot use client_ca_file {str(ca_file)!r}: {error}; expected PEM certificates"
            ) from error
    context.verify_mode = _VERIFY_MODES[config.client_auth_type]
    return context


def tls_files(config: TlsServerConfig, folder: Path) -> tuple[Path, ...]:
    names = (config.cert_file, config.key_file, config.client_ca_file)
    return tuple(folder / name for name in names if name is not None)
