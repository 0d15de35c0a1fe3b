"""Key affinity: whether the records of a key stayed in their partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_audit.engine.unit_columns import compares_records, target_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_audit.engine.unit_columns import Units

_SIZES: Final = ("records", "copies", "strays", "overtook")


def count_by_key(
    spark: SparkSession, records: DataFrame, disordered: DataFrame | None, units: Units
) -> DataFrame:
    """One row per key that is on both sides: topic, kh and record counts.

    `records`: on the source; `copies`: on the target; `strays`: copies that moved; `overtook`:
    source records that overtook another, from *disordered* (by topic and kh; None: order is not
    judged). Both groupings aggregate before the exchange, so few rows move.
    """
    known = F.broadcast(target_table(spark, units))
    source = F.col("side") == SOURCE
    counted = units.of(records).where(F.col("in_keys") & F.col("kh").isNotNull() & units.judged)
    by_partition = (
        counted.join(known, on=["topic", "partition"], how="left")
        .where(source | (F.col("offset") >= F.coalesce("auditable_from", F.lit(0))))
        .groupBy("topic", "kh", "partition")
        .agg(F.count(F.when(source, 1)).alias("ns"), F.count(F.when(~source, 1)).alias("nd"))
    )
    home, away = F.col("ns") > 0, F.col("nd") > 0
    by_key = by_partition.groupBy("topic", "kh").agg(
        F.count(F.when(home, 1)).alias("homes"),
        F.sum("ns").alias("records"),
        F.sum("nd").alias("copies"),
        F.sum(F.when(home, 0).otherwise(F.col("nd"))).alias("elsewhere"),
        F.sort_array(F.collect_list(F.when(away, F.col("nd"))), asc=False).alias("fullest"),
    )
    # Where partition numbers differ, a key may be in as many partitions as on the source.
    beyond = F.col("copies") - F.aggregate(
        F.slice("fullest", 1, F.col("homes")), F.lit(0).cast("bigint"), lambda a, b: a + b
    )
    both = by_key.where("homes > 0 and copies > 0").select(
        "topic",
        "kh",
        "records",
        "copies",
        F.when(units.flag_per_unit(compares_records), F.col("elsewhere"))
        .otherwise(beyond)
        .alias("strays"),
    )
    if disordered is None:
        return both.withColumn("overtook", F.lit(0).cast("bigint"))
    return both.join(disordered, on=["topic", "kh"], how="left").fillna(0, ["overtook"])


def tally_affinity(found: DataFrame, *, by_size: bool) -> DataFrame:
    """Keys and their summed counts by topic, with *by_size* also by the counts of one key."""
    sizes = tuple(F.col(each).alias(f"{each}_of_one") for each in _SIZES) if by_size else ()
    return found.groupBy("topic", *sizes).agg(
        F.count("*").alias("keys_"),
        F.count(F.when(F.col("strays") > 0, 1)).alias("keys_split"),
        F.count(F.when(F.col("overtook") > 0, 1)).alias("keys_disordered"),
        *(F.sum(each).alias(each) for each in _SIZES),
    )
