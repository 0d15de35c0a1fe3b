"""Percentages of a report as text."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

_DIGITS: Final = 3
_MAX_DIGITS: Final = 15
_HUNDRED: Final = Decimal(100)
_NOISE: Final = Decimal("1e-12")
"""Less than one event of any budget; removes binary rounding errors."""


def share(ratio: float | None) -> str:
    """A share of good events in percent, rounded down: `99.95 %`; `n/a` for None.

    Digits are added so that only 1 is printed as 100 % and only 0 as 0 %.
    """
    if ratio is None:
        return "n/a"
    return f"{_rounded(Decimal(repr(ratio)) * _HUNDRED):f} %"


def signed_share(ratio: float | None) -> str:
    """A remaining budget in percent: `61.2 %`, `-140 %`; `n/a` for None."""
    if ratio is None:
        return "n/a"
    found = Decimal(repr(ratio)).quantize(_NOISE) * _HUNDRED
    return f"{found.quantize(Decimal('0.1'), ROUND_FLOOR).normalize():f} %"


def _rounded(percent: Decimal) -> Decimal:
    for digits in range(_DIGITS, _MAX_DIGITS):
        step = Decimal(1).scaleb(-digits)
        found = percent.quantize(step, ROUND_FLOOR)
        if not found and percent > 0:
            continue
        return found.normalize() if found != found.to_integral() else found.to_integral()
    return percent.quantize(Decimal(1).scaleb(-_MAX_DIGITS), ROUND_CEILING)
