"""The key under which a digest is posted once per channel."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.reporting.report_entry import WindowKind

if TYPE_CHECKING:
    from mm2slo_core.reporting.slo_report import Report

_DAY_MS: Final = 86_400_000


def period_key(report: Report) -> str:
    """`2026-07` for a finished calendar period, `7d to 2026-07-20` for others.

    Rolling periods shorter than a day change at multiples of their length since the epoch.
    """
    window = report.window
    at = report.as_of if window is None else window.end
    day = datetime.fromtimestamp(at / 1000, ZoneInfo(report.zone)).date()
    if window is None:
        return f"own windows to {day}"
    length = window.end - window.start
    if window.kind is WindowKind.CALENDAR:
        is_finished = length >= round(window.seconds * 1000)
        return window.name if is_finished else f"{window.name} to {day}"
    if length >= _DAY_MS:
        return f"{window.name} to {day}"
    started = datetime.fromtimestamp((at - at % length) / 1000, UTC)
    return f"{window.name} from {started:%Y-%m-%dT%H:%MZ}"
