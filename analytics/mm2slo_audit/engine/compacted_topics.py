"""Compacted topics: only the newest record of each key is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_audit.engine.unmatched_records import COLUMNS, MISSING, UNEXPLAINED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units

_WRITTEN = ("flow", "partition", "offset", "ts", "fp", "kh", "tombstone", "earliest", "latest")


def pair_newest(records: DataFrame, units: Units) -> DataFrame:
    """Join the newest source record of each flow and key with the newest target record of the key.

    *records* have arrival brackets. Target columns start with `t_` and are null without a copy;
    `settled`: whether the contents agree. Rows without a source record are only on the target.
    """
    uses_time = units.flag_per_unit(lambda each: each.identity.timestamp)
    keyed = units.of(records).where("kh is not null")
    newest = keyed.groupBy("topic", "side", "flow", "partition", "kh").agg(
        F.max_by(F.struct("offset", "ts", "fp", "tombstone", "earliest", "latest"), "offset").alias(
            "last"
        )
    )
    by_flow = newest.groupBy("topic", "side", "flow", "kh").agg(
        F.max_by(
            F.struct("partition", "last"), F.struct(F.col("last.ts"), F.col("partition"))
        ).alias("last")
    )
    flat = by_flow.select(
        "topic", "side", "flow", "kh", F.col("last.partition").alias("partition"), "last.last.*"
    )
    source = flat.where(F.col("side") == SOURCE).drop("side")
    target = flat.where(F.col("side") != SOURCE).select(
        "topic", "kh", *(F.col(each).alias(f"t_{each}") for each in _WRITTEN if each != "kh")
    )
    of_key = Window.partitionBy("topic", "kh")
    equal = (F.col("fp") == F.col("t_fp")) & (~uses_time | (F.col("ts") == F.col("t_ts")))
    age = units.per_unit(lambda each: each.taken_at) - F.col("ts")
    kept = (age >= 0) & (age < units.per_unit(lambda each: each.tombstones_kept))
    gone = F.col("t_offset").isNull() & F.col("tombstone") & ~kept
    settled = F.coalesce(equal, F.lit(False)) | F.coalesce(gone, F.lit(False))
    # A later write or delete of another flow hides this flow's copy.
    return source.join(target, on=["topic", "kh"], how="full_outer").withColumns(
        {
            "settled": F.max(settled).over(of_key),
            "newest": F.max("ts").over(of_key),
            "first_of_key": F.row_number().over(of_key.orderBy("flow", "partition")) == 1,
        }
    )


def find_latest_leftover(compared: DataFrame, units: Units) -> DataFrame:
    """Missing and unexplained records, in `unmatched_records.COLUMNS`."""
    uses_time = units.flag_per_unit(lambda each: each.identity.timestamp)
    open_ = ~F.col("settled")
    missing = compared.where(open_ & F.col("offset").isNotNull())
    alone = F.col("offset").isNull() & ~F.col("t_tombstone")
    as_new = F.col("offset").isNotNull() & uses_time & (F.col("t_ts") >= F.col("newest"))
    unexplained = compared.where(
        open_ & F.col("first_of_key") & F.col("t_offset").isNotNull() & (alone | as_new)
    )
    return _leftover(missing, MISSING, "", F.col("flow"), units).unionByName(
        _leftover(unexplained, UNEXPLAINED, "t_", F.col("t_flow"), units)
    )


def _leftover(rows: DataFrame, kind: int, prefix: str, flow: Column, units: Units) -> DataFrame:
    chosen = rows.select(
        "topic",
        F.lit(kind).alias("kind"),
        flow.alias("flow"),
        "kh",
        *(F.col(f"{prefix}{each}").alias(each) for each in ("partition", "offset", "ts", "fp")),
    )
    none = F.lit(None).cast("int")
    return chosen.withColumns(
        {
            "group_partition": F.lit(-1),
            "group_ts": units.group_ts,
            "owner_flow": none,
            "owner_partition": none,
            "decided": F.lit(False),
        }
    ).select(*COLUMNS)
