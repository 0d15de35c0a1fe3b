"""Whether keys stayed in their partition, from counts by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from mm2slo_audit.engine.schema import SOURCE
from mm2slo_audit.engine.units import compares_records, target_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_audit.engine.units import Units


def keys(
    spark: SparkSession, records: DataFrame, disordered: DataFrame | None, units: Units
) -> DataFrame:
    """One row per key that is on both sides: topic, kh, strays (its records that moved), overtaken.

    Both groupings add up before they exchange, so little of the records moves.
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
        F.sum("nd").alias("copies"),
        F.sum(F.when(home, 0).otherwise(F.col("nd"))).alias("elsewhere"),
        F.sort_array(F.collect_list(F.when(away, F.col("nd"))), asc=False).alias("fullest"),
    )
    # Partitions that cannot be compared: as many as on the source are no strays.
    beyond = F.col("copies") - F.aggregate(
        F.slice("fullest", 1, F.col("homes")), F.lit(0).cast("bigint"), lambda a, b: a + b
    )
    both = by_key.where("homes > 0 and copies > 0").select(
        "topic",
        "kh",
        F.when(units.flag(compares_records), F.col("elsewhere")).otherwise(beyond).alias("strays"),
    )
    if disordered is None:
        return both.withColumn("overtaken", F.lit(False))
    marked = disordered.withColumn("overtaken", F.lit(True))
    return both.join(marked, on=["topic", "kh"], how="left").fillna(False, ["overtaken"])


def affinity_tally(found: DataFrame) -> DataFrame:
    """By topic: keys, keys_split, keys_disordered, records_moved."""
    return found.groupBy("topic").agg(
        F.count("*").alias("keys_"),
        F.count(F.when(F.col("strays") > 0, 1)).alias("keys_split"),
        F.count(F.when(F.col("overtaken"), 1)).alias("keys_disordered"),
        F.sum("strays").alias("records_moved"),
    )
