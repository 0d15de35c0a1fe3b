"""Writes generated files, and finds stale ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_file(path: Path, text: str) -> None:
    """Write *text* to *path* and create its folder. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another folder") from None


def stale_files(folder: Path, expected: Mapping[str, str], command: str) -> tuple[str, ...]:
    """Return a message for each file in *folder* that differs from *expected*."""
    return tuple(
        f"{folder / name} is outdated; run: {command}"
        for name, text in expected.items()
        if _read(folder / name) != text
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
