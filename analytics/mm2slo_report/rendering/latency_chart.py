"""Geometry of the chart of a flow's latency percentiles, in SVG units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_report.rendering.burn_down_chart import Tick
from mm2slo_report.rendering.value_format import length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_report.rendering.page_views import LatencyView, PercentileView

WIDTH: Final = 640.0
LEFT: Final = 58.0
_RIGHT: Final = 24.0
_TOP: Final = 24.0
_ROW: Final = 30.0
_BOTTOM: Final = 30.0
_LEAST: Final = 0.001
"""Seconds: a logarithmic axis has no zero."""


class Bar(NamedTuple):
    """One percentile, known to lie between `start` and `end`."""

    name: str
    y: float
    start: float
    end: float
    open: bool
    """The lower bound is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyChart:
    """Bars on a logarithmic axis, and the thresholds of the objectives."""

    height: float
    floor: float
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    thresholds: tuple[Tick, ...]
    summary: str


def latency_chart(view: LatencyView, thresholds: Sequence[float] = ()) -> LatencyChart:
    """The chart of *view*; *thresholds* are in seconds."""
    known = [each.upper for each in view.percentiles] + [*thresholds]
    known += [each.lower for each in view.percentiles if each.lower is not None]
    low = math.floor(math.log10(max(min(known, default=_LEAST), _LEAST)))
    high = max(math.ceil(math.log10(max(max(known, default=1.0), _LEAST))), low + 1)

    def x(seconds: float) -> float:
        place = (math.log10(max(seconds, 10.0**low)) - low) / (high - low)
        return LEFT + (WIDTH - LEFT - _RIGHT) * place

    floor = _TOP + _ROW * len(view.percentiles)
    return LatencyChart(
        height=floor + _BOTTOM,
        floor=floor,
        bars=tuple(
            Bar(
                percentile_name(each.q),
                _TOP + _ROW * (number + 0.5),
                x(each.lower or 0.0),
                x(each.upper),
                each.lower is None,
            )
            for number, each in enumerate(view.percentiles)
        ),
        ticks=tuple(Tick(x(10.0**power), _decade(power)) for power in range(low, high + 1)),
        thresholds=tuple(Tick(x(each), length(each)) for each in sorted(set(thresholds))),
        summary="; ".join(
            f"{percentile_name(each.q)} {bounds_text(each)}" for each in view.percentiles
        ),
    )


def _decade(power: int) -> str:
    return f"{10 ** (power + 3):,} ms" if power < 0 else f"{10**power:,} s"


def bounds_text(found: PercentileView) -> str:
    """The bounds as text; one value if they agree."""
    if found.lower is None:
        return f"at most {length(found.upper, up=True)}"
    lower, upper = length(found.lower), length(found.upper, up=True)
    return upper if lower == upper else f"{lower} to {upper}"
