"""The HEC token, read again when Splunk rejects it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Token:
    """The token in *path*. Raises UserError if it cannot be read at the start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._value = _read(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(
                f"cannot read logship.token_file {str(path)!r}: {reason}; expected a file with "
                "the token of the HTTP Event Collector"
            ) from None

    def reveal(self) -> str:
        """The token, only for the header of a request."""
        return self._value

    def read_again(self) -> bool:
        """Whether the file has another token by now; an unreadable one changes nothing."""
        try:
            value = _read(self._path)
        except (OSError, ValueError):
            return False
        changed, self._value = value != self._value, value
        return changed

    def advice(self) -> str | None:
        """What to do if other users of this host can read the file.

        Kubernetes mounts it readable by a group, and the pod has no other users.
        """
        mode = stat.S_IMODE(self._path.stat().st_mode)
        if "KUBERNETES_SERVICE_HOST" in os.environ or not mode & _OTHERS:
            return None
        path = self._path
        return f"{path} has mode {mode:04o}, so other users can read it; run: chmod 600 {path}"


def _read(path: Path) -> str:
    value = path.read_text(encoding="ascii").strip()
    if not value or not value.isprintable() or " " in value:
        raise ValueError("it does not contain one token")
    return value
