"""Durations such as `500ms`, `5s`, `10m`, `1h` and `35d`; a number is in seconds."""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator

from mm2slo_core.config.invalid_value import InvalidValueError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PATTERN: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h|d)?", re.ASCII)
_EXPECTED: Final = "a duration such as 500ms, 5s, 10m, 1h or 35d, or a number of seconds"


def parse_duration(value: object) -> float:
    """*value* in seconds. Raises InvalidValueError (a ValueError) if it is not a duration."""
    if isinstance(value, str) and (match := _PATTERN.fullmatch(value.strip())):
        return round(float(match["number"]) * _UNITS[match["unit"] or "s"], 6)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        if value < 0:
            raise InvalidValueError("is negative", expected=_EXPECTED)
        return float(value)
    raise InvalidValueError(
        "is not a duration", expected=_EXPECTED, next_step="write 5s, for example"
    )


def duration_label(seconds: float) -> str:
    """*seconds* as a label value, always in seconds: `60s`, `0.5s`."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def format_duration(seconds: float) -> str:
    """*seconds* in the largest unit that divides it: 60 is `1m`, 0.5 is `500ms`."""
    for unit in ("d", "h", "m"):
        count = seconds / _UNITS[unit]
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


# Positive: an interval of 0 would be a busy loop, and no canary could meet a deadline of 0.
Duration = Annotated[float, BeforeValidator(DurationBound(0.001))]
# For requests that are repeated on a cluster.
Interval = Annotated[float, BeforeValidator(DurationBound(0.1))]
SlowInterval = Annotated[float, BeforeValidator(DurationBound(1.0))]
