"""The TLS and access rules in force: read at the start, and again when one of their files changes.

A change applies to the next connection. A file that became invalid is logged once, and what was in
force stays: a half-written file must neither open nor close the server.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mm2slo_core.config.config_problems import ConfigError
from mm2slo_core.config.yaml_document import parse_document
from mm2slo_core.user_errors import UserError
from mm2slo_web.authenticator import Authenticator
from mm2slo_web.tls_context import server_context, tls_files
from mm2slo_web.web_config_report import parse_web_config

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from mm2slo_web.web_config import TlsServerConfig, WebConfig

    Load: TypeAlias = Callable[[], tuple["Access", tuple[Path, ...]]]

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """What a connection needs: its TLS, its authentication, the headers of its responses."""

    authenticator: Authenticator
    tls: ssl.SSLContext | None = None
    allowed_names: tuple[str, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def allows(self, certificate: Mapping[str, Any] | None) -> bool:
        """Whether a verified client *certificate* has one of the allowed names, if any are set."""
        names = {str(name) for _, name in (certificate or {}).get("subjectAltName", ())}
        return not self.allowed_names or not names.isdisjoint(self.allowed_names)


OPEN: Final = Access(Authenticator({}, ()))
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

    def current(self) -> Access:
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

    def load() -> tuple[Access, tuple[Path, ...]]:
        nonlocal newest
        config = _read(path)
        tls = config.tls_server_config
        users, tokens = config.basic_auth_users, config.bearer_tokens_sha256
        access = Access(
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
        lambda: (Access(OPEN.authenticator, server_context(tls, Path())), tls_files(tls, Path()))
    )


def _read(path: Path) -> WebConfig:
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
