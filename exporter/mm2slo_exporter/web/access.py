"""The web configuration in force: read at the start, and again when one of its files changes."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.config.config_problems import ConfigError
from mm2slo_core.config.yaml_document import parse_document
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.web.auth import Authenticator
from mm2slo_exporter.web.config_report import parse_web_config
from mm2slo_exporter.web.tls import server_context

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from mm2slo_exporter.web.config import WebConfig

_LOG = logging.getLogger(__name__)
_Stamp = tuple[tuple[str, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """What one connection needs to know: its TLS, its authentication, its headers."""

    authenticator: Authenticator
    tls: ssl.SSLContext | None
    allowed_names: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]


OPEN = Access(Authenticator({}, ()), None, (), ())
"""Plain HTTP, open to everyone who can connect."""


class WebConfigFile:
    """A web configuration file and the files it names.

    A change is seen by the next connection. A file that became wrong is reported once in the log
    and what was in force stays so: a half-written file must not open or close the door.
    Raises UserError at the start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._access, self._files = _load(path)
        self._stamp = _stamp(self._files)

    def current(self) -> Access:
        """What is in force now."""
        with self._lock:
            stamp = _stamp(self._files)
            if stamp != self._stamp:
                self._stamp = stamp
                self._reload()
            return self._access

    def _reload(self) -> None:
        try:
            self._access, self._files = _load(self._path)
        except UserError as error:
            _LOG.warning("the web configuration stays as it was: %s", error)
            return
        self._stamp = _stamp(self._files)
        _LOG.info("web configuration %s read again", self._path)


def _load(path: Path) -> tuple[Access, tuple[Path, ...]]:
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
    config = parse_web_config(document.value, str(path), document.line_of)
    folder = path.parent
    tls = config.tls_server_config
    access = Access(
        Authenticator.of(config),
        server_context(tls, folder) if tls else None,
        tls.client_allowed_sans if tls else (),
        tuple(config.http_server_config.headers.items()),
    )
    return access, (path, *_named_files(config, folder))


def _named_files(config: WebConfig, folder: Path) -> tuple[Path, ...]:
    tls = config.tls_server_config
    if tls is None:
        return ()
    names = (tls.cert_file, tls.key_file, tls.client_ca_file)
    return tuple(folder / name for name in names if name is not None)


def _stamp(files: tuple[Path, ...]) -> _Stamp:
    return tuple(_stamp_of(file) for file in files)


def _stamp_of(file: Path) -> tuple[str, int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None  # gone: a change like any other, reported when it is read
    return (str(file), found.st_mtime_ns, found.st_size, found.st_ino)
