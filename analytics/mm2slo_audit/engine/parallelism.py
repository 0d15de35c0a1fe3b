"""Partition counts of the engine's exchanges."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from mm2slo_audit.engine.partition_parts import Parts
    from mm2slo_audit.engine.unit_columns import Units

_PER_CORE: Final = 32
"""Of the exchange of all records: small hash tables stay in the CPU caches."""
_ROWS: Final = 25_000
"""Fewer rows do not need a partition of their own: a task costs up to 40 ms of CPU."""
_FEW_PER_CORE: Final = 8
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def count_exchange_partitions(spark: SparkSession, units: Units, split: Parts) -> int:
    """Partitions of the exchange of all records: at most one per partition or part to judge."""
    cores = spark.sparkContext.defaultParallelism
    places = sum(len(unit.partitions) for unit in units.scopes)
    places += sum(number - 1 for number in split.values())
    rows = sum(unit.planned for unit in units.scopes)
    return max(1, min(places, _PER_CORE * cores, max(cores, rows // _ROWS)))


@contextmanager
def limit_shuffle_partitions(spark: SparkSession) -> Iterator[None]:
    """Size all other exchanges by the cores of the cluster, unless the session sets a number.

    Cached frames keep their partitions however few records they have: with Spark's default of 200 a
    one-core cluster ran 5,917 tasks of 8 ms instead of 582.
    """
    if spark.sparkContext.getConf().contains(_SHUFFLE_PARTITIONS):
        yield
        return
    former = str(spark.conf.get(_SHUFFLE_PARTITIONS))
    spark.conf.set(_SHUFFLE_PARTITIONS, _FEW_PER_CORE * spark.sparkContext.defaultParallelism)
    try:
        yield
    finally:
        spark.conf.set(_SHUFFLE_PARTITIONS, former)
