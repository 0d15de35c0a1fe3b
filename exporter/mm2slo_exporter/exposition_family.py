"""Metric families and histograms to publish, with their validation and the series limit.

With too many series, a coarser granularity is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, pairwise
from operator import add
from typing import TypeAlias

from mm2slo_core.catalogue.metric import Granularity, Metric, MetricType


class ExpositionError(ValueError):
    """A family contradicts the catalogue or has an invalid value."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram value: cumulative counts per bucket, +Inf last, and the sum of observations.

    Raises ExpositionError without buckets, and when counts decrease or are negative.
    """

    cumulative: tuple[int, ...]
    sum: float

    def __post_init__(self) -> None:
        rises = all(lower <= upper for lower, upper in pairwise((0, *self.cumulative)))
        if not self.cumulative or not rises:
            raise ExpositionError(
                f"cumulative bucket counts must not be negative or decrease, got {self.cumulative}"
            )

    @classmethod
    def from_counts(cls, counts: Iterable[int], total: float) -> Histogram:
        """From counts per bucket, including the one above the last bound."""
        return cls(tuple(accumulate(counts)), total)

    @property
    def count(self) -> int:
        return self.cumulative[-1]


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Label values of several series, each in two parts that other series share.

    A tuple per series would take more memory than all that is published.
    """

    first: list[tuple[str, ...]]
    last: list[tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return map(add, self.first, self.last)

    def where(self, chosen: Sequence[bool]) -> LabelColumns:
        """Those of the series that are *chosen*."""
        return LabelColumns(list(compress(self.first, chosen)), list(compress(self.last, chosen)))


@dataclass(frozen=True, slots=True)
class SeriesColumns:
    """Series with numbers, as columns: tens of thousands of pairs take time and memory."""

    labels: LabelColumns
    values: list[float]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float]]:
        return zip(self.labels, self.values, strict=True)


SeriesList: TypeAlias = Sequence[tuple[tuple[str, ...], float | Histogram]] | SeriesColumns


@dataclass(frozen=True, slots=True)
class Family:
    """Series of one metric at one granularity: pairs of label values and value.

    Label values are in the order of `metric.labels_at(granularity)`. Several families of one
    metric (one per flow) are published as one.
    """

    metric: Metric
    series: SeriesList
    granularity: Granularity = Granularity.PARTITION


def samples_per_series(metric: Metric) -> int:
    """Lines per value of *metric*, each of which Prometheus counts as a series."""
    if metric.type is MetricType.HISTOGRAM:
        return len(metric.buckets) + 3
    return 1


def count_series(families: Iterable[Family]) -> int:
    """Series as Prometheus counts them: each bucket, sum and count of a histogram is one series."""
    return sum(len(family.series) * samples_per_series(family.metric) for family in families)


@dataclass(frozen=True, slots=True)
class LimitedFamilies:
    """Families at the effective granularity.

    `coarsened`: it is coarser than wanted. `over_limit`: even flow level, which is never reduced,
    has more series than allowed.
    """

    families: Sequence[Family]
    granularity: Granularity
    series: int
    coarsened: bool
    over_limit: bool


def limit_series(
    families_at: Callable[[Granularity], Sequence[Family]], wanted: Granularity, limit: int
) -> LimitedFamilies:
    """The finest families not finer than *wanted* that have at most *limit* series.

    *families_at* is called once per level, finest first.
    """
    level = wanted
    families = families_at(level)
    series = count_series(families)
    while series > limit and level.coarser is not None:
        level = level.coarser
        families = families_at(level)
        series = count_series(families)
    return LimitedFamilies(families, level, series, level is not wanted, series > limit)
