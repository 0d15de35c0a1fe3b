"""Values as text for people, never rounded to a better one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.objectives.quantity_text import percent

if TYPE_CHECKING:
    from datetime import tzinfo

UNKNOWN: Final = "n/a"


@lru_cache(maxsize=4096)
def utc(at: int) -> str:
    """*at* (epoch ms) as RFC 3339 in UTC: `2026-07-14T10:30:00Z`, with ms if not zero."""
    moment = datetime.fromtimestamp(at / 1000, UTC).replace(tzinfo=None)
    precision = "milliseconds" if at % 1000 else "seconds"
    return f"{moment.isoformat(timespec=precision)}Z"


def zone_of(name: str) -> tzinfo:
    """The time zone with the IANA *name*."""
    return UTC if name == "UTC" else ZoneInfo(name)


def moment(at: int, zone: tzinfo) -> str:
    """`2026-07-14 10:30 UTC`."""
    return f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d %H:%M %Z}"


def day(at: int, zone: tzinfo) -> str:
    """`14 Jul`, in English whatever the locale."""
    found = datetime.fromtimestamp(at / 1000, zone)
    return f"{found.day} {_MONTHS[found.month - 1]}"


_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def count(value: float | None) -> str:
    """A number of events; a fraction (from averaged replicas) is never shown as 0."""
    if value is None:
        return UNKNOWN
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"


def percent_text(target: float) -> str:
    """A target as configured: `99.9 %`."""
    return f"{percent(target):f} %"


def burn(rate: float | None) -> str:
    """`14.4x`; `n/a` without events."""
    if rate is None:
        return UNKNOWN
    if rate == 0 or rate >= 100:
        return f"{rate:,.0f}x"
    return f"{rate:.3g}x"


def length(seconds: float | None, *, up: bool = False) -> str:
    """A duration with one decimal in a fitting unit: `3.4 h`, `-12 min`.

    Rounded down, as for remaining time; with *up* rounded up, as for latencies.
    """
    if seconds is None:
        return UNKNOWN
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= (2 * size if unit == "d" else size):
            return f"{_tenths(Decimal(repr(seconds)) / size, up)} {unit}"
    if seconds == 0:
        return "0 s"
    if abs(seconds) >= 1:
        return f"{_tenths(Decimal(repr(seconds)), up)} s"
    return f"{seconds * 1000:.3g} ms"


def plain(value: float | None) -> str:
    """Every digit of *value*, without an exponent; empty if unknown."""
    if value is None or not isfinite(value):
        return ""
    if isinstance(value, int):
        return str(value)
    return f"{Decimal(repr(value)):f}"


def whole(value: float | None) -> float | int | None:
    """*value*, as an int if whole; None for NaN and infinities."""
    if value is None or not isfinite(value):
        return None
    return int(value) if value == int(value) else value


def finite(value: float | None) -> float | None:
    """*value*; None for NaN and infinities."""
    return None if value is None or not isfinite(value) else value


def _tenths(value: Decimal, up: bool) -> str:
    found = value.quantize(Decimal("0.1"), ROUND_CEILING if up else ROUND_FLOOR)
    return f"{found.to_integral() if found == found.to_integral() else found:,f}"
