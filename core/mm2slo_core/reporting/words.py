"""Figures of a report as people read them."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

_DIGITS: Final = 3
_MOST: Final = 15
_HUNDRED: Final = Decimal(100)
_NOISE: Final = Decimal("1e-12")
"""Less than an event of any budget: what is left is a difference of binary fractions."""


def share(ratio: float | None) -> str:
    """A share of good events in percent, rounded towards 0: `99.95 %`; `n/a` for None.

    Only a share of 1 is printed as 100 %, and only one of 0 as 0 %: as many digits are added as
    that takes.
    """
    if ratio is None:
        return "n/a"
    return f"{_rounded(Decimal(repr(ratio)) * _HUNDRED):f} %"


def signed_share(ratio: float | None) -> str:
    """What is left of a budget in percent: `61.2 %`, `-140 %`; `n/a` for None."""
    if ratio is None:
        return "n/a"
    found = Decimal(repr(ratio)).quantize(_NOISE) * _HUNDRED
    return f"{found.quantize(Decimal('0.1'), ROUND_FLOOR).normalize():f} %"


def _rounded(percent: Decimal) -> Decimal:
    for digits in range(_DIGITS, _MOST):
        step = Decimal(1).scaleb(-digits)
        found = percent.quantize(step, ROUND_FLOOR)
        if not found and percent > 0:
            continue
        return found.normalize() if found != found.to_integral() else found.to_integral()
    return percent.quantize(Decimal(1).scaleb(-_MOST), ROUND_CEILING)
