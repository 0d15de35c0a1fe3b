"""Labels of budget steps: days by date, shorter steps by time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from mm2slo_report.rendering.value_format import day, length

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import Day

_HALF_DAY_MS: Final = 43_200_000
"""In ms. Days cut by the window are short, but never all of them."""


def by_days(parts: Sequence[Day]) -> bool:
    """Whether *parts* are days, possibly cut by the window."""
    return _longest(parts) > _HALF_DAY_MS


def step_size(parts: Sequence[Day]) -> str:
    """`by day`, or `in steps of 5 min`."""
    return "by day" if by_days(parts) else f"in steps of {length(_longest(parts) / 1000)}"


def part_name(start: int, parts: Sequence[Day], zone: tzinfo) -> str:
    """Label of the part at *start*: `14 Jul`, `10:30`, or `14 Jul 10:30`."""
    if by_days(parts):
        return day(start, zone)
    first, last = (
        datetime.fromtimestamp(at / 1000, zone).date() for at in (parts[0].start, parts[-1].start)
    )
    clock = f"{datetime.fromtimestamp(start / 1000, zone):%H:%M}"
    return clock if first == last else f"{day(start, zone)} {clock}"


def end_text(start: int, end: int, zone: tzinfo) -> str:
    """`10:42`, with the date if it differs from that of *start*."""
    first, last = (datetime.fromtimestamp(at / 1000, zone) for at in (start, end))
    return f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"


def _longest(parts: Sequence[Day]) -> int:
    return max(each.end - each.start for each in parts)
