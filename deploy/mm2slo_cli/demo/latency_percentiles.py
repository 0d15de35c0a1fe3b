"""Percentiles of latency histograms (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from mm2slo_core.catalogue.histogram_buckets import LATENCY_BUCKETS


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Percentiles in seconds; None if above the last bucket bound."""

    p50: float | None
    p99: float | None


def latency_percentiles(counts: tuple[int, ...]) -> LatencyPercentiles | None:
    """Return the percentiles of *counts* per bucket; None without observations."""
    return (
        LatencyPercentiles(quantile(0.5, counts), quantile(0.99, counts)) if sum(counts) else None
    )


def quantile(share: float, counts: tuple[int, ...]) -> float | None:
    """Return a quantile as PromQL's `histogram_quantile`: linear within the bucket of the rank.

    *counts* are per bucket, with at least one observation. Above the last bound the result is None,
    where PromQL returns that bound.
    """
    rank = share * sum(counts)
    below, lower = 0, 0.0
    for upper, count in zip(LATENCY_BUCKETS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (upper - lower) * (rank - below) / count
        below, lower = below + count, upper
    return None
