"""The Retry-After header of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of the Retry-After header; None if it is missing or not a number."""
    for name, value in headers.items():
        if name.lower() == "retry-after":
            try:
                return float(value)
            except (TypeError, ValueError):
                return None
    return None
