"""Counts latencies into the catalogue's buckets."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mm2slo_core.catalogue.histogram_buckets import LATENCY_BUCKETS
from mm2slo_exporter.state.flow_report import LatencyHistogram

if TYPE_CHECKING:
    from collections.abc import Iterable


class LatencyCounter:
    """A cumulative histogram. Negative latencies (clock skew) count in the first bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENCY_BUCKETS) + 1)
        self._total = 0.0

    def add(self, latencies: Iterable[float]) -> None:
        """Count *latencies* (seconds)."""
        for seconds in latencies:
            self._counts[bisect_left(LATENCY_BUCKETS, seconds)] += 1
            self._total += seconds

    def read(self) -> LatencyHistogram:
        return LatencyHistogram(tuple(self._counts), self._total)
