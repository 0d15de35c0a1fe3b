"""Percentiles of latencies counted in the catalogue's buckets (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from mm2slo_core.catalogue.buckets import LATENCY_BUCKETS


@dataclass(frozen=True, slots=True)
class Latency:
    """Two percentiles in seconds; None for one that lies beyond the last bucket bound."""

    p50: float | None
    p99: float | None


def latency(counts: tuple[int, ...]) -> Latency | None:
    """The percentiles of observations counted per bucket; None without any."""
    return Latency(quantile(0.5, counts), quantile(0.99, counts)) if sum(counts) else None


def quantile(share: float, counts: tuple[int, ...]) -> float | None:
    """What PromQL's `histogram_quantile` gives: linear within the bucket that holds the rank.

    *counts* are per bucket, with at least one observation. Beyond the last bound PromQL gives
    that bound; here it is None, since nothing is known but that it is larger.
    """
    rank = share * sum(counts)
    below, lower = 0, 0.0
    for upper, count in zip(LATENCY_BUCKETS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (upper - lower) * (rank - below) / count
        below, lower = below + count, upper
    return None
