"""Lookup of paths in plain YAML values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mm2slo_core.config.config_problems import Path

NOT_WRITTEN: Final = object()


def value_at(root: object, path: Path) -> object:
    """The value at *path*, or NOT_WRITTEN."""
    for part in path:
        if isinstance(root, list):
            if not isinstance(part, int) or part >= len(root):
                return NOT_WRITTEN
            root = root[part]
        elif isinstance(root, dict) and part in root:
            root = root[part]
        else:
            return NOT_WRITTEN
    return root
