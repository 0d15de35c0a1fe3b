"""Equal records without a timestamp in common, told apart by the cuts of their partition.

`mm2slo_core.audit.reference.cut_buckets` says how; here as window functions. All of them partition by
what the records of a group have in common, and more, so that one exchange serves them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_columns import grouped
from mm2slo_audit.engine.record_schema import SOURCE, TARGET
from mm2slo_audit.engine.unit_columns import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units
    from mm2slo_core.audit.audit_scope import UnitScope

_ALIKE: Final = ("topic", "group_partition", "fp")
"""`GROUP` without the timestamp: here that is a literal, which Spark takes out of windows but not
out of the exchange, and so would exchange again for each of them."""
_END: Final = 1 << 62
"""No offset is beyond it."""
_EDGES: Final = (
    "of_topic int, of_side int, of_partition int, start bigint, until bigint, bucket int"
)


def pair_in_buckets(records: DataFrame, units: Units) -> DataFrame:
    """The records of *units*, all of them bucketed, with the columns of `GROUP`.

    Also `paired`, whether it has its counterpart, and `k`: of those that have, the k-th of the
    source belongs to the k-th of the target.
    """
    rows = _in_buckets(grouped(records, units), units).repartition(*_ALIKE)
    rows = rows.withColumn("paired", F.lit(False))
    bucket = F.col("bucket")
    for cell in (bucket, F.shiftright(bucket, 1), F.shiftright(bucket + 1, 1)):
        rows = rows.withColumn("cell", F.when(~F.col("paired"), cell))
        alike = Window.partitionBy(*_ALIKE, "cell")
        fewer = F.least(
            *(F.count(F.when(F.col("side") == side, 1)).over(alike) for side in (SOURCE, TARGET))
        )
        # In this order, that one sorting serves both.
        rows = rows.withColumn("rank", _rank("cell")).withColumn("fewer", fewer)
        rows = rows.withColumn("paired", F.col("paired") | (F.col("rank") <= F.col("fewer")))
    return rows.withColumn("k", _rank("paired")).drop("bucket", "cell", "rank", "fewer")


def _rank(column: str) -> Column:
    return F.row_number().over(Window.partitionBy(*_ALIKE, column, "side").orderBy("offset"))


def _in_buckets(rows: DataFrame, units: Units) -> DataFrame:
    edges = (edge for unit in units.scopes for edge in _edges(unit))
    found = rows.join(
        F.broadcast(table(rows.sparkSession, edges, _EDGES)),
        on=(F.col("topic") == F.col("of_topic"))
        & (F.col("side") == F.col("of_side"))
        & (F.col("partition") == F.col("of_partition"))
        & (F.col("offset") >= F.col("start"))
        & (F.col("offset") < F.col("until")),
        how="left",
    )
    return found.fillna(0, ["bucket"]).drop("of_topic", "of_side", "of_partition", "start", "until")


def _edges(unit: UnitScope) -> Iterator[tuple[int, ...]]:
    """Of each bucket but the first: where it starts and ends on either side."""
    (flow,) = unit.flows
    for source in flow.partitions:
        for side, edges in (
            (SOURCE, [cut.upstream for cut in source.cuts]),
            (TARGET, [cut.downstream for cut in source.cuts]),
        ):
            ends = [*edges[1:], _END]
            for bucket, (start, until) in enumerate(zip(edges, ends, strict=False), 1):
                yield unit.index, side, source.partition, start, until, bucket
