"""Relative periods, such as `last-month`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo


def resolve_relative_period(text: str, as_of: int, zone: tzinfo) -> str:
    """Replace a relative period at *as_of* (epoch ms): `last-month` is `2026-06` in July 2026.

    Any other text is returned unchanged.
    """
    name = _NAMES.get(text)
    if name is None:
        return text
    return name(datetime.fromtimestamp(as_of / 1000, UTC).astimezone(zone).date())


def _yesterday(today: date) -> str:
    return f"{today - timedelta(days=1)}"


def _week(today: date) -> str:
    year, week, _ = (today - timedelta(days=7)).isocalendar()
    return f"{year:04}-W{week:02}"


def _month(today: date) -> str:
    return f"{today.replace(day=1) - timedelta(days=1):%Y-%m}"


def _quarter(today: date) -> str:
    number = 4 * today.year + (today.month - 1) // 3 - 1
    return f"{number // 4:04}-Q{number % 4 + 1}"


def _year(today: date) -> str:
    return f"{today.year - 1:04}"


_NAMES: Final[dict[str, Callable[[date], str]]] = {
    "yesterday": _yesterday,
    "last-week": _week,
    "last-month": _month,
    "last-quarter": _quarter,
    "last-year": _year,
}
