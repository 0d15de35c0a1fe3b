"""User directories by the XDG Base Directory Specification."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/mm2slo`, by default `~/.cache/mm2slo`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """Return `$XDG_STATE_HOME/mm2slo`, by default `~/.local/state/mm2slo`."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, below_home: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / below_home) / "mm2slo"
