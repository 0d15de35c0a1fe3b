"""Time ranges as Grafana writes them, and the steps between the points of a chart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mm2slo_core.catalogue.promql import duration

_SCRAPES: Final = 4
_LONGEST: Final = 10_000
"""Points; Prometheus refuses more than 11,000."""
_STEPS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600),
    *(900, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000, 31_536_000),
)
"""Seconds; Grafana rounds to the nearest of these steps."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time range in epoch seconds."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """In seconds."""
        return self.end - self.start

    def step(self, points: float, scrape: float) -> float:
        """Seconds between about *points* points, at least *scrape*, the scrape interval."""
        least = max(scrape, self.length / _LONGEST)
        return max(_nice(self.length / max(points, 1.0)), least)

    def aligned(self, step: float) -> Span:
        """The range at multiples of *step*, as Grafana aligns it."""
        start = self.start // step * step
        return Span(start, max(self.end // step * step, start + step))

    def builtin(self, step: float, scrape: float) -> Mapping[str, str]:
        """Grafana's own variables for a panel of this *step*."""
        whole = max(round(self.length), 1)
        return {
            "__interval": duration(step),
            "__interval_ms": f"{step * 1000:.0f}",
            "__range": duration(whole),
            "__range_s": f"{whole}",
            "__range_ms": f"{self.length * 1000:.0f}",
            "__rate_interval": duration(max(step + scrape, _SCRAPES * scrape)),
            "__url_time_range": f"from={self.start * 1000:.0f}&to={self.end * 1000:.0f}",
        }


def _nice(step: float) -> float:
    for below, above in pairwise(_STEPS):
        if step < (below + above) / 2:
            return below
    return _STEPS[-1]
