"""Whether Prometheus is set up for reports: its retention and its rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNITS: Final = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 7 * 86_400.0,
    "y": 365 * 86_400.0,
}
_PART: Final = re.compile(r"(\d+)(ms|[smhdwy])", re.ASCII)
_DURATION: Final = re.compile(r"(?:\d+(?:ms|[smhdwy]))+", re.ASCII)
_SIZE: Final = re.compile(r"[0-9.]+\s*(?:[KMGTPE]i?)?B", re.ASCII)
_SPARE: Final = 7 * 86_400.0
"""Time to look into a past window."""


def retention(text: str) -> tuple[float | None, str]:
    """The seconds and the size in `storageRetention`, as in `15d`, `35d or 10GiB`, `512MB`."""
    seconds, size = None, ""
    for part in (each.strip() for each in text.split(" or ")):
        if _DURATION.fullmatch(part):
            seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(part))
        elif _SIZE.fullmatch(part):
            size = part
    return seconds, size


def retention_warnings(configured: str, window: float) -> Sequence[str]:
    """Warnings about figures over *window* seconds."""
    seconds, size = retention(configured)
    needed = format_duration(window + _SPARE)
    if seconds is not None and seconds > 0 and seconds < window:
        text = (
            f"Prometheus keeps samples for {format_duration(seconds)}, less than the window of "
            f"{format_duration(window)}: what is older is missing; start it with "
            f"--storage.tsdb.retention.time={needed}"
        )
        return (text,)
    if seconds is None and size:
        text = (
            f"Prometheus keeps {size} of samples, whatever their age: the start of a window of "
            f"{format_duration(window)} may be missing; also start it with "
            f"--storage.tsdb.retention.time={needed}"
        )
        return (text,)
    return ()


def missing_groups(loaded: Iterable[str], expected: Iterable[str]) -> Sequence[str]:
    """A sentence for each of the *expected* rule groups that is not *loaded*."""
    known = set(loaded)
    return tuple(
        f"Prometheus has not loaded the rule group {name}: add the generated files to its "
        "rule_files and reload it"
        for name in expected
        if name not in known
    )
