"""Positions and texts of axis ticks."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from dashboard_preview import grafana_units

_CLOCK: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600),
    *(43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000),
)
"""Usual seconds between ticks of a time axis."""
_MINUTE: Final = 60
_DAY: Final = 86_400


class Tick(NamedTuple):
    """A position on an axis and its text."""

    at: float
    text: str


def numbers(low: float, high: float, most: int, unit: str) -> tuple[Tick, ...]:
    """Round numbers from *low* to *high*, at most about *most*, in *unit*."""
    step = _step((high - low) / max(most, 1), unit)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = (number * step for number in range(first, last + 1))
    return tuple(Tick(each, grafana_units.on_axis(unit, each, step)) for each in places)


def moments(start: float, end: float, most: int) -> tuple[Tick, ...]:
    """Round times (epoch seconds) from *start* to *end*, at most about *most*, in UTC."""
    step = _first(_CLOCK, (end - start) / max(most, 1))
    pattern = "%H:%M:%S" if step < _MINUTE else "%H:%M"
    if step >= _DAY:
        pattern = "%m/%d"
    elif end - start > _DAY:
        pattern = "%m/%d %H:%M"
    found, at = [], math.ceil(start / step) * step
    while at <= end:
        found.append(Tick(at, datetime.fromtimestamp(at, UTC).strftime(pattern)))
        at += step
    return tuple(found)


def _step(least: float, unit: str) -> float:
    if unit == grafana_units.SECONDS and least > 1:
        return _first(_CLOCK, least)
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * factor for factor in (1, 2, 5, 10, 20) if size * factor >= least * 0.999)


def _first(steps: Sequence[int], least: float) -> float:
    return float(next((each for each in steps if each >= least * 0.999), steps[-1]))
