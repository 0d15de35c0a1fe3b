"""Pairs of equal records whose timestamps differ, distinguished by the cuts of their partition.

The algorithm of `mm2slo_core.audit.reference.cut_buckets` as window functions. All of them
partition by the group columns and more, so one exchange serves them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_columns import add_group_columns
from mm2slo_audit.engine.record_schema import SOURCE, TARGET
from mm2slo_audit.engine.unit_columns import literal_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units
    from mm2slo_core.audit.audit_scope import UnitScope

_ALIKE: Final = ("topic", "group_partition", "fp")
"""`GROUP` without the timestamp: a literal here, which Spark removes from windows but not from the
exchange, so it would exchange again for each window."""
_END: Final = 1 << 62
"""Greater than any offset."""
_EDGES: Final = (
    "of_topic int, of_side int, of_partition int, start bigint, until bigint, bucket int"
)


def pair_in_buckets(records: DataFrame, units: Units) -> DataFrame:
    """The records of bucketed *units*, with the columns of `GROUP`.

    Adds `paired` (whether the record has a counterpart) and `k`: the k-th paired record of the
    source belongs to the k-th of the target.
    """
    rows = _in_buckets(add_group_columns(records, units), units).repartition(*_ALIKE)
    rows = rows.withColumn("paired", F.lit(False))
    bucket = F.col("bucket")
    for cell in (bucket, F.shiftright(bucket, 1), F.shiftright(bucket + 1, 1)):
        rows = rows.withColumn("cell", F.when(~F.col("paired"), cell))
        alike = Window.partitionBy(*_ALIKE, "cell")
        fewer = F.least(
            *(F.count(F.when(F.col("side") == side, 1)).over(alike) for side in (SOURCE, TARGET))
        )
        # In this order one sort serves both.
        rows = rows.withColumn("rank", _rank("cell")).withColumn("fewer", fewer)
        rows = rows.withColumn("paired", F.col("paired") | (F.col("rank") <= F.col("fewer")))
    return rows.withColumn("k", _rank("paired")).drop("bucket", "cell", "rank", "fewer")


def _rank(column: str) -> Column:
    return F.row_number().over(Window.partitionBy(*_ALIKE, column, "side").orderBy("offset"))


def _in_buckets(rows: DataFrame, units: Units) -> DataFrame:
    edges = (edge for unit in units.scopes for edge in _edges(unit))
    found = rows.join(
        F.broadcast(literal_table(rows.sparkSession, edges, _EDGES)),
        on=(F.col("topic") == F.col("of_topic"))
        & (F.col("side") == F.col("of_side"))
        & (F.col("partition") == F.col("of_partition"))
        & (F.col("offset") >= F.col("start"))
        & (F.col("offset") < F.col("until")),
        how="left",
    )
    return found.fillna(0, ["bucket"]).drop("of_topic", "of_side", "of_partition", "start", "until")


def _edges(unit: UnitScope) -> Iterator[tuple[int, ...]]:
    """Start and end of each bucket but the first, on both sides."""
    (flow,) = unit.flows
    for source in flow.partitions:
        for side, edges in (
            (SOURCE, [cut.upstream for cut in source.cuts]),
            (TARGET, [cut.downstream for cut in source.cuts]),
        ):
            ends = [*edges[1:], _END]
            for bucket, (start, until) in enumerate(zip(edges, ends, strict=False), 1):
                yield unit.index, side, source.partition, start, until, bucket
