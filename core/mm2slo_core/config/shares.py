"""Shares of a whole as people write them: `1%`, `100%`, or `0.01`."""

import math
import re
from typing import Annotated, Final

from pydantic import BeforeValidator

from mm2slo_core.config.refusal import Refusal

_PATTERN: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<percent>%)?", re.ASCII)
_EXPECTED: Final = "a share such as 1%, 0.1% or 100%"
_SMALLEST: Final = 1 / (1 << 20)
"""The audit keeps records by 20 bits of a hash."""


class ShareBound:
    """Validates a share of more than nothing and at most all; marks the field for the docs."""

    __slots__ = ()

    def __call__(self, value: object) -> float:
        """A number in (0, 1], or Refusal."""
        share = _parse(value)
        if not _SMALLEST <= share <= 1:
            raise Refusal("is not a share that can be drawn", expected="from 0.0001% to 100%")
        return share


def format_share(share: float) -> str:
    """`0.01` as `1%`."""
    return f"{share * 100:.6f}".rstrip("0").rstrip(".") + "%"


def _parse(value: object) -> float:
    if isinstance(value, str) and (match := _PATTERN.fullmatch(value.strip())):
        number = float(match["number"])
        return number / 100 if match["percent"] else number
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise Refusal("is not a share", expected=_EXPECTED, next_step="write for example 1%")


Share = Annotated[float, BeforeValidator(ShareBound())]
