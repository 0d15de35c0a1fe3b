"""Mergeable latency histograms with 16 buckets per doubling, accurate to 4.4 %.

A bucket is ceil(16 * log2(max(ms, 1))), upper-inclusive as in Prometheus' native histograms of
schema 4; bucket 0 holds all up to 1 ms, and lower bounds below zero. Latencies are whole
milliseconds, so a bucket is described by its smallest and largest whole number; up to 23 ms a
bucket holds at most one number, without loss.

A latency is a bracket (lower, upper), and so are derived values: the percentile of the lower bounds
is a lower bound of the percentile, that of the upper bounds an upper bound.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.confidence_bounds import order_statistic_ranks
from mm2slo_core.audit.unit_outcome import LatencyCells

if TYPE_CHECKING:
    from collections.abc import Iterable

PER_DOUBLING: Final = 16
PERCENTILES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)
_ERROR: Final = 0.05


def bucket(ms: int) -> int:
    """Return the index of the bucket of *ms*. Spark: `ceil(16 * log2(greatest(ms, 1)))`.

    Spark's `log2` is inexact at 2^29, 2^31 and 2^39 ms (6 days and more), one bucket too high.
    """
    return math.ceil(PER_DOUBLING * math.log2(max(ms, 1)))


def upper_bound_ms(index: int) -> int:
    """Return the largest whole number of milliseconds in a bucket."""
    return math.floor(math.pow(2.0, index / PER_DOUBLING))


def lower_bound_ms(index: int) -> int:
    """Return the smallest whole number of milliseconds in a bucket; 0 for the first."""
    return upper_bound_ms(index - 1) + 1 if index > 0 else 0


def minimum_n(q: float) -> int:
    """Return the observations needed for a 95 % upper bound of the q-quantile: q^n <= 5 %.

    p95 59, p99 299, p99.9 2995.
    """
    return math.ceil(math.log(_ERROR) / math.log(q))


@dataclass(frozen=True, slots=True)
class Bracket:
    """Bounds of a latency in ms."""

    lower: float | None
    """None: not known."""
    upper: float


@dataclass(frozen=True, slots=True)
class Share:
    """The good records of *total*: at least and at most."""

    good_min: int
    good_max: int
    total: int


def percentile_name(q: float) -> str:
    """Format as `p99`, `p99.9`."""
    return f"p{q * 100:.3f}".rstrip("0").rstrip(".")


def merge(parts: Iterable[LatencyCells]) -> LatencyCells:
    cells: Counter[tuple[int | None, int]] = Counter()
    negative = total_upper = total_lower = 0
    for part in parts:
        cells.update(part.cells)
        negative += part.negative
        total_upper += part.total_upper_ms
        total_lower += part.total_lower_ms
    return LatencyCells(cells, negative, total_upper, total_lower)


def observed(latency: LatencyCells) -> int:
    """Return the number of records in the cells."""
    return sum(latency.cells.values())


def percentile(latency: LatencyCells, q: float, *, sampled: bool = False) -> Bracket | None:
    """Return the q-quantile by nearest rank; None below `minimum_n(q)` records.

    *sampled* widens it by the 95 % order-statistic interval, so that it encloses the quantile of
    all records, not only of the sample. Also None if no rank of the sample is high enough (p99:
    below 368); lower is None if none is low enough.
    """
    n = observed(latency)
    if n < minimum_n(q):
        return None
    rank = math.ceil(q * n - 1e-9)  # 0.57 * 100 is slightly more than 57
    low, high = order_statistic_ranks(n, q) if sampled else (rank, rank)
    upper = _at_rank(((each, count) for (_, each), count in latency.cells.items()), high)
    if upper is None:
        return None
    lower = _at_rank(((each, count) for (each, _), count in latency.cells.items()), low)
    return Bracket(None if lower is None else lower_bound_ms(lower), upper_bound_ms(upper))


def average(latency: LatencyCells) -> Bracket | None:
    """Return the mean of the records in the cells, or None; unknown lower bounds count as 0."""
    n = observed(latency)
    if n == 0:
        return None
    return Bracket(latency.total_lower_ms / n, latency.total_upper_ms / n)


def within(latency: LatencyCells, threshold_ms: int, *, bad: int = 0, unknown: int = 0) -> Share:
    """Return the share of records that arrived within *threshold_ms*.

    *bad* records did not arrive (lost, overdue) and are never good. *unknown* records arrived at a
    time that the timeline does not cover and count in `good_max` only, as do records with
    inconsistent clocks (`negative`) and buckets that contain the threshold.
    """
    good_min = good_max = 0
    for (lower, upper), count in latency.cells.items():
        if upper_bound_ms(upper) <= threshold_ms:
            good_min += count
        if lower is None or lower_bound_ms(lower) <= threshold_ms:
            good_max += count
    undecided = unknown + latency.negative
    return Share(good_min, good_max + undecided, observed(latency) + undecided + bad)


def _at_rank(cells: Iterable[tuple[int | None, int]], rank: int | None) -> int | None:
    """Return the bucket of the rank-th smallest record; unknown ones are the smallest."""
    if rank is None:
        return None
    passed = 0
    for index, count in sorted(cells, key=lambda each: -1 if each[0] is None else each[0]):
        passed += count
        if passed >= rank:
            return index
    return None
