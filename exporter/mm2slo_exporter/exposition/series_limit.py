"""The series limit: a coarser granularity when there are too many series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_exporter.exposition.metric_family import Family, count_series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.catalogue import Granularity


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
