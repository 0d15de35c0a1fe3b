"""Files that a command generates: written, and found current or stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write *text* to *path* and make its folder; UserError when it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}; name another folder with --out"
        ) from None


def stale(folder: Path, expected: Mapping[str, str], command: str) -> tuple[str, ...]:
    """A text for each file of *folder* that *command* would write otherwise."""
    return tuple(
        f"{folder / name} is not current; run: {command}"
        for name, text in expected.items()
        if _read(folder / name) != text
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
