"""User directories by the XDG Base Directory Specification, and the version of Java."""

import os
import re
from pathlib import Path
from typing import Final


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/mm2slo`, by default `~/.cache/mm2slo`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """Return `$XDG_STATE_HOME/mm2slo`, by default `~/.local/state/mm2slo`."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, below_home: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / below_home) / "mm2slo"


_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def java_major(version_text: str) -> int | None:
    """Return the major version in the output of `java -version`; None without one."""
    match = _VERSION.search(version_text)
    return None if match is None else int(match[1])
