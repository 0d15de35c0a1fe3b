"""Converts latency histograms of a report to series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_exporter.exposition import Histogram

if TYPE_CHECKING:
    from mm2slo_exporter.families.flow_view import Series
    from mm2slo_exporter.families.label_cache import Labels
    from mm2slo_exporter.state.flow_report import LatencyHistogram


def latency_series(labels: Labels, latency: LatencyHistogram | None) -> list[Series]:
    """The series of a latency histogram; none while the sum is negative.

    That happens when the sender's clock is ahead by more than the latency; OpenMetrics 1.0 does
    not allow negative sums.
    """
    if latency is None or latency.total_seconds < 0:
        return []
    return [(labels, Histogram.from_counts(latency.counts, latency.total_seconds))]
