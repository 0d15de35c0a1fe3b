"""Targets and windows as text, without binary rounding errors."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60}
_SHORTHAND: Final = re.compile(r"(?P<count>[1-9]\d{0,8})(?P<unit>[mhdw])", re.ASCII)


def percent(share: float) -> Decimal:
    """*share* in percent: 0.999 is 99.9, not 99.90000000000001."""
    return (Decimal(repr(share)) * 100).normalize()


def percent_text(share: float) -> str:
    """`99.9%`."""
    return f"{percent(share):f}%"


def plain(share: float) -> str:
    """*share* without exponent: `0.9999`."""
    return f"{Decimal(repr(share)):f}"


def shorthand(seconds: float) -> str:
    """`28d`, `90m`. Raises ValueError unless *seconds* is a whole number of minutes."""
    for unit in ("d", "h", "m"):
        if seconds > 0 and seconds % _UNITS[unit] == 0:
            return f"{int(seconds // _UNITS[unit])}{unit}"
    raise ValueError(f"duration is {seconds!r} s; expected whole minutes")


def parse_shorthand(text: object) -> float | None:
    """Seconds of `5m`, `1h`, `28d` or `4w`; None for anything else."""
    match = _SHORTHAND.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else float(int(match["count"]) * _UNITS[match["unit"]])
