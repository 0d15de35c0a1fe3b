"""Durations, shares, targets and windows as text, parsed and written without rounding errors."""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

_DURATION_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h|d)?", re.ASCII)
_EXPECTED_DURATION: Final = "a duration such as 500ms, 5s, 10m, 1h or 35d, or a number of seconds"


def parse_duration(value: object) -> float:
    """*value* in seconds. Raises InvalidValueError (a ValueError) if it is not a duration."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return round(float(match["number"]) * _DURATION_UNITS[match["unit"] or "s"], 6)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        if value < 0:
            raise InvalidValueError("is negative", expected=_EXPECTED_DURATION)
        return float(value)
    raise InvalidValueError(
        "is not a duration", expected=_EXPECTED_DURATION, next_step="write 5s, for example"
    )


def duration_label(seconds: float) -> str:
    """*seconds* as a label value, always in seconds: `60s`, `0.5s`."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def format_duration(seconds: float) -> str:
    """*seconds* in the largest unit that divides it: 60 is `1m`, 0.5 is `500ms`."""
    for unit in ("d", "h", "m"):
        count = seconds / _DURATION_UNITS[unit]
        if count >= 1 and count.is_integer():
            return f"{int(count)}{unit}"
    if 0 < seconds < 1 and (seconds * 1000).is_integer():
        return f"{int(seconds * 1000)}ms"
    return duration_label(seconds)


@dataclass(frozen=True)
class DurationBound:
    """Validates a duration of *at_least* to *at_most* seconds; the docs read the bounds."""

    at_least: float
    at_most: float = math.inf

    def __call__(self, value: object) -> float:
        seconds = parse_duration(value)
        if seconds > self.at_most:
            raise InvalidValueError(
                "is too long",
                expected=f"a duration of at most {format_duration(self.at_most)}",
            )
        if seconds < self.at_least:
            raise InvalidValueError(
                "is too short",
                expected=f"a duration of at least {format_duration(self.at_least)}",
            )
        return seconds


class InvalidValueError(ValueError):
    """An invalid value: what is wrong, what was expected, what to do.

    *what* follows the value, as in `'soon'` + `is not a duration`, and must not contain it: the
    report decides whether to show the value. *hides_value* forbids it.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str,
        next_step: str | None = None,
        hides_value: bool = False,
    ) -> None:
        super().__init__(f"{what}; expected {expected}")
        self.what = what
        self.expected = expected
        self.next_step = next_step
        self.hides_value = hides_value


_SHARE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<percent>%)?", re.ASCII)
_EXPECTED_SHARE: Final = "a percentage such as 1%, 0.1% or 100%"
_TARGET: Final = "a percentage between 0% and 100%, such as 99.9%"

_SMALLEST: Final = 1 / (1 << 20)
"""The audit samples records by 20 bits of a hash."""


def parse_share(value: object) -> float:
    """The share of a sample; raises InvalidValueError."""
    share = _parse_ratio(value)
    # Below one step of the hash a sample would be empty, and look like a clean audit.
    if not _SMALLEST <= share <= 1:
        raise InvalidValueError("is out of range", expected="a percentage from 0.0001% to 100%")
    return share


def _parse_ratio(value: object) -> float:
    if isinstance(value, str) and (match := _SHARE.fullmatch(value.strip())):
        # Decimal: 99.9 / 100 is 0.9990000000000001 in binary.
        number = Decimal(match["number"])
        return float(number / 100 if match["percent"] else number)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise InvalidValueError(
        "is not a percentage", expected=_EXPECTED_SHARE, next_step="write 1%, for example"
    )


def parse_target(value: object) -> float:
    """The target of an objective; raises InvalidValueError."""
    target = _parse_ratio(value)
    if 0 < target < 1:
        return target
    what = "is not above 0%" if target <= 0 else "is above 100%"
    next_step = f"write {value}%" if 1 < target < 100 else "write 99.9%"
    if target == 1:
        what = "leaves no error budget: one bad event would exhaust it for the whole window"
        next_step = "write 99.99%; alerts on lost records fire for single records"
    raise InvalidValueError(what, expected=_TARGET, next_step=next_step)


_SHORTHAND_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60}
_SHORTHAND: Final = re.compile(r"(?P<count>[1-9]\d{0,8})(?P<unit>[mhdw])", re.ASCII)


def percent(share: float) -> Decimal:
    """*share* in percent: 0.999 is 99.9, not 99.90000000000001."""
    return (Decimal(repr(share)) * 100).normalize()


def percent_text(share: float) -> str:
    """`99.9%`."""
    return f"{percent(share):f}%"


def decimal_text(share: float) -> str:
    """*share* without exponent: `0.9999`."""
    return f"{Decimal(repr(share)):f}"


def parse_shorthand(text: object) -> float | None:
    """Seconds of `5m`, `1h`, `28d` or `4w`; None for anything else."""
    match = _SHORTHAND.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else float(int(match["count"]) * _SHORTHAND_UNITS[match["unit"]])


_DIGITS: Final = 3
_MAX_DIGITS: Final = 15
_HUNDRED: Final = Decimal(100)

_NOISE: Final = Decimal("1e-12")
"""Less than one event of any budget; removes binary rounding errors."""


def share_text(ratio: float | None) -> str:
    """A share of good events in percent, rounded down: `99.95 %`; `n/a` for None.

    Digits are added so that only 1 is printed as 100 % and only 0 as 0 %.
    """
    if ratio is None:
        return "n/a"
    return f"{_rounded(Decimal(repr(ratio)) * _HUNDRED):f} %"


def signed_share_text(ratio: float | None) -> str:
    """A remaining budget in percent: `61.2 %`, `-140 %`; `n/a` for None."""
    if ratio is None:
        return "n/a"
    found = Decimal(repr(ratio)).quantize(_NOISE) * _HUNDRED
    return f"{found.quantize(Decimal('0.1'), ROUND_FLOOR).normalize():f} %"


def spent_share_text(ratio: float | None) -> str:
    """A spent share of a budget in percent: `28.8 %`, `644.8 %`; `n/a` for None.

    Rounded up to a tenth, so that it is never shown as less than it is, as what remains is rounded
    down. Digits are added so that only a whole budget is printed as 100 %, and for shares below a
    tenth.
    """
    if ratio is None:
        return "n/a"
    exact = Decimal(repr(ratio)).quantize(_NOISE) * _HUNDRED
    for digits in range(1, _MAX_DIGITS):
        step = Decimal(1).scaleb(-digits)
        found = exact.quantize(step, ROUND_CEILING)
        if found == exact or (exact > step and found != _HUNDRED):
            break
    return f"{found.normalize():f} %"


def _rounded(percent: Decimal) -> Decimal:
    for digits in range(_DIGITS, _MAX_DIGITS):
        step = Decimal(1).scaleb(-digits)
        found = percent.quantize(step, ROUND_FLOOR)
        if not found and percent > 0:
            continue
        return found.normalize() if found != found.to_integral() else found.to_integral()
    return percent.quantize(Decimal(1).scaleb(-_MAX_DIGITS), ROUND_CEILING)
