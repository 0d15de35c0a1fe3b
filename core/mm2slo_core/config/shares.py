"""Shares, written as `1%`, `100%` or `0.01`."""

import math
import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator

from mm2slo_core.config.invalid_value import InvalidValueError

_PATTERN: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<percent>%)?", re.ASCII)
_EXPECTED: Final = "a percentage such as 1%, 0.1% or 100%"
_TARGET: Final = "a percentage between 0% and 100%, such as 99.9%"
_SMALLEST: Final = 1 / (1 << 20)
"""The audit samples records by 20 bits of a hash."""


def parse_share(value: object) -> float:
    """The share of a sample; raises InvalidValueError."""
    share = _parse(value)
    if not _SMALLEST <= share <= 1:
        raise InvalidValueError("is out of range", expected="a percentage from 0.0001% to 100%")
    return share


def _parse(value: object) -> float:
    if isinstance(value, str) and (match := _PATTERN.fullmatch(value.strip())):
        # Decimal: 99.9 / 100 is 0.9990000000000001 in binary.
        number = Decimal(match["number"])
        return float(number / 100 if match["percent"] else number)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise InvalidValueError(
        "is not a percentage", expected=_EXPECTED, next_step="write 1%, for example"
    )


def parse_target(value: object) -> float:
    """The target of an objective; raises InvalidValueError."""
    target = _parse(value)
    if 0 < target < 1:
        return target
    what = "is not above 0%" if target <= 0 else "is above 100%"
    next_step = f"write {value}%" if 1 < target < 100 else "write 99.9%"
    if target == 1:
        what = "leaves no error budget: one bad event would exhaust it for the whole window"
        next_step = "write 99.99%; alerts on lost records fire for single records"
    raise InvalidValueError(what, expected=_TARGET, next_step=next_step)


Share = Annotated[float, BeforeValidator(parse_share)]
Target = Annotated[float, BeforeValidator(parse_target)]
