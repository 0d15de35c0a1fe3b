"""`defaults:`, merged into each flow, and the origin of merged values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.yaml_paths import NOT_WRITTEN, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.config.config_problems import Path


def merge(defaults: Mapping[str, object], flow: Mapping[str, object]) -> dict[str, object]:
    """*flow* over *defaults*: mappings are merged by key, other values are replaced."""
    merged = dict(defaults)
    for key, value in flow.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def origin(path: Path, root: object) -> Path:
    """The path in the file of the merged value at *path*: in the flow or in defaults."""
    if path[:1] != ("flows",) or value_at(root, path) is not NOT_WRITTEN:
        return path
    inherited = ("defaults", *path[2:])
    return inherited if value_at(root, inherited) is not NOT_WRITTEN else path
