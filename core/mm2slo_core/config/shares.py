"""Shares of a whole as people write them: `1%`, `100%`, or `0.01`."""

import math
import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator

from mm2slo_core.config.refusal import Refusal
from mm2slo_core.objectives.figures import percent_text

_PATTERN: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<percent>%)?", re.ASCII)
_EXPECTED: Final = "a share such as 1%, 0.1% or 100%"
_TARGET: Final = "a share between 0% and 100%, as in 99.9%"
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


def _parse(value: object) -> float:
    if isinstance(value, str) and (match := _PATTERN.fullmatch(value.strip())):
        # Decimal: 99.9 / 100 is 0.9990000000000001 in binary.
        number = Decimal(match["number"])
        return float(number / 100 if match["percent"] else number)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise Refusal("is not a share", expected=_EXPECTED, next_step="write for example 1%")


class TargetBound:
    """Validates the share of good events that is promised; marks the field for the docs."""

    __slots__ = ()

    def __call__(self, value: object) -> float:
        """A number within (0, 1), or Refusal."""
        target = _parse(value)
        if 0 < target < 1:
            return target
        if target == 1:
            raise Refusal(
                "leaves no budget: the first bad event would breach it for the whole window",
                expected=_TARGET,
                next_step="write 99.99%, and let counts of lost records alert on each one",
            )
        raise Refusal(
            "promises nothing" if target <= 0 else "is more than all events",
            expected=_TARGET,
            next_step=f"write {value}%" if 1 < target < 100 else "write 99.9%",
        )


def format_share(share: float) -> str:
    """`0.01` as `1%`, without the noise of binary fractions: `0.999` is `99.9%`."""
    return percent_text(share)


Share = Annotated[float, BeforeValidator(ShareBound())]
Target = Annotated[float, BeforeValidator(TargetBound())]
