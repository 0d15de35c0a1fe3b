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

from mm2slo_core.user_errors import UserError
from mm2slo_web.authenticator import Authenticator

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
