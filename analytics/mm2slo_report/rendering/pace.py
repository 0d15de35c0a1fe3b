"""How the parts of a budget are called: days by their date, shorter ones by the clock."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from mm2slo_report.rendering.figures import day, length

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.incidents import Day

_HALF_A_DAY: Final = 43_200_000
"""In ms. Days that a window cuts may be short, but never all of them."""


def by_days(parts: Sequence[Day]) -> bool:
    """Whether *parts* are days, but for those that a window cuts."""
    return _longest(parts) > _HALF_A_DAY


def pace(parts: Sequence[Day]) -> str:
    """`day by day`, or `by steps of 5 min`."""
    return "day by day" if by_days(parts) else f"by steps of {length(_longest(parts) / 1000)}"


def part_name(start: int, parts: Sequence[Day], zone: tzinfo) -> str:
    """The one of *parts* that starts at *start*: `14 Jul`, `10:30`, or `14 Jul 10:30`."""
    if by_days(parts):
        return day(start, zone)
    first, last = (
        datetime.fromtimestamp(at / 1000, zone).date() for at in (parts[0].start, parts[-1].start)
    )
    clock = f"{datetime.fromtimestamp(start / 1000, zone):%H:%M}"
    return clock if first == last else f"{day(start, zone)} {clock}"


def ending(start: int, end: int, zone: tzinfo) -> str:
    """The end of what started at *start*: `10:42`, with the date where that is another."""
    first, last = (datetime.fromtimestamp(at / 1000, zone) for at in (start, end))
    return f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"


def _longest(parts: Sequence[Day]) -> int:
    return max(each.end - each.start for each in parts)
