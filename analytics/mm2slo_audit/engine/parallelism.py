"""Into how many partitions the engine's exchanges go."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from mm2slo_audit.engine.partition_parts import Parts
    from mm2slo_audit.engine.unit_columns import Units

_PER_CORE: Final = 32
"""Of the exchange of all records: smaller hash tables stay in the caches."""
_FEW_PER_CORE: Final = 8
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def exchange_partitions(spark: SparkSession, units: Units, split: Parts) -> int:
    """No more than there are places to be judged, nor so many that tasks hold nothing."""
    places = sum(len(unit.partitions) for unit in units.scopes)
    places += sum(number - 1 for number in split.values())
    return max(1, min(places, _PER_CORE * spark.sparkContext.defaultParallelism))


@contextmanager
def limit_shuffle_partitions(spark: SparkSession) -> Iterator[None]:
    """All other exchanges: by the cores of the cluster, unless the session was told how many.

    What is kept for a second look keeps its partitions, however few records are in them. With
    Spark's default of 200 a cluster of one core ran 5,917 tasks of 8 ms in place of 582.
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
