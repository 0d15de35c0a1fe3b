"""Latency histograms of a report as published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_exporter.exposition import Histogram

if TYPE_CHECKING:
    from mm2slo_exporter.families.labels import Labels
    from mm2slo_exporter.families.view import Series
    from mm2slo_exporter.state.model import LatencyHistogram


def latency_series(labels: Labels, latency: LatencyHistogram | None) -> list[Series]:
    """The series of a histogram of latencies.

    None while their sum is below 0: the sender's clock is so far ahead that most latencies are
    negative, and no histogram can carry such a sum (OpenMetrics 1.0).
    """
    if latency is None or latency.total_seconds < 0:
        return []
    return [(labels, Histogram.from_counts(latency.counts, latency.total_seconds))]
