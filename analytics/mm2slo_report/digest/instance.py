"""The name under which a digest is posted once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.reporting.entry import WindowKind

if TYPE_CHECKING:
    from mm2slo_core.reporting.report import Report

_DAY_MS: Final = 86_400_000


def instance(report: Report) -> str:
    """`2026-07` once it is over; `7d to 2026-07-20` of what moves with the day.

    Rolling periods of less than a day: each multiple of their length since the epoch.
    """
    window = report.window
    at = report.as_of if window is None else window.end
    day = datetime.fromtimestamp(at / 1000, ZoneInfo(report.zone)).date()
    if window is None:
        return f"own windows to {day}"
    length = window.end - window.start
    if window.kind is WindowKind.CALENDAR:
        over = length >= round(window.seconds * 1000)
        return window.name if over else f"{window.name} to {day}"
    if length >= _DAY_MS:
        return f"{window.name} to {day}"
    started = datetime.fromtimestamp((at - at % length) / 1000, UTC)
    return f"{window.name} from {started:%Y-%m-%dT%H:%MZ}"
