"""Counts latencies into the catalogue's buckets."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mm2slo_core.catalogue.buckets import LATENCY_BUCKETS
from mm2slo_exporter.state.model import LatencyHistogram

if TYPE_CHECKING:
    from collections.abc import Iterable


class LatencyCounter:
    """A histogram that only grows. A negative latency (clock skew) falls in the first bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENCY_BUCKETS) + 1)
        self._total = 0.0

    def add(self, latencies: Iterable[float]) -> None:
        """Count latencies in seconds."""
        for seconds in latencies:
            self._counts[bisect_left(LATENCY_BUCKETS, seconds)] += 1
            self._total += seconds

    def read(self) -> LatencyHistogram:
        """Copy the counts."""
        return LatencyHistogram(tuple(self._counts), self._total)
