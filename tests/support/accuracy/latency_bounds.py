"""Widths of latency bounds from polls, and whether they contain the true latency."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mm2slo_core.audit.unit_outcome import (
    PERCENTILES,
    LatencyBracket,
    LatencyCells,
    UnitOutcome,
    count_latencies,
    latency_percentile,
    lower_bound_ms,
    merge_latencies,
    upper_bound_ms,
)


@dataclass(frozen=True, slots=True)
class Truth:
    """Each record's least and greatest possible latency, ms, each in ascending order."""

    least: list[int]
    greatest: list[int]


def known(latencies: Sequence[int]) -> Truth:
    """Exactly known latencies."""
    ascending = sorted(latencies)
    return Truth(ascending, ascending)


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile: the bounds of the true value, and those of the audit."""

    q: float
    least_ms: int
    greatest_ms: int
    found: LatencyBracket | None

    @property
    def held(self) -> bool:
        """Whether the audit's bounds agree with the true value."""
        found = self.found
        if found is None or found.lower is None:
            return False
        return found.lower <= self.greatest_ms and self.least_ms <= found.upper


@dataclass(frozen=True, slots=True)
class Widths:
    """Latency bounds of one kind on one topic."""

    records: int
    percentiles: tuple[Percentile, ...]
    mean_width_ms: float
    widest_ms: int
    """Widest bounds of a record, rounded outward to buckets."""


def cells_of(outcome: UnitOutcome, which: str) -> LatencyCells:
    """`end_to_end` or `transfer` over all partitions."""
    return merge_latencies(getattr(each, which) for each in outcome.partitions)


def nearest_rank(ascending: Sequence[int], q: float) -> int:
    """The q-quantile of all values."""
    return ascending[math.ceil(q * len(ascending)) - 1]


def widths(outcome: UnitOutcome, which: str, truth: Truth) -> Widths:
    """Compare an outcome's bounds with true latencies in ms."""
    cells = cells_of(outcome, which)
    return Widths(
        records=count_latencies(cells),
        percentiles=tuple(
            Percentile(
                q,
                nearest_rank(truth.least, q),
                nearest_rank(truth.greatest, q),
                latency_percentile(cells, q),
            )
            for q in PERCENTILES
        ),
        mean_width_ms=(cells.total_upper_ms - cells.total_lower_ms) / count_latencies(cells),
        widest_ms=max(
            upper_bound_ms(upper) - lower_bound_ms(lower)
            for lower, upper in cells.cells
            if lower is not None
        ),
    )
