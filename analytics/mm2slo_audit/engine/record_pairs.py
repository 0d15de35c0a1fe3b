"""Pairs of a source record and its copy, record by record.

The exact form of what `match_tally` derives from counts: records are numbered within their group,
and the k-th of the source belongs to the k-th of the target. This takes another exchange, so it is
used only where counts do not decide: identical records, keys instead of partitions, topics with
LogAppendTime, and disorder.

Order can be judged from a subset of the pairs that holds both records of every overtaking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.bucket_pairs import pair_in_buckets
from mm2slo_audit.engine.group_columns import GROUP, add_group_columns
from mm2slo_audit.engine.late_copies import is_late
from mm2slo_audit.engine.latency_cells import latency_columns
from mm2slo_audit.engine.leftover_verdicts import verdict_code, verdict_rows
from mm2slo_audit.engine.match_tally import tally_partitions
from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_audit.engine.unit_columns import compares_records
from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units


def add_arrival_brackets(records: DataFrame, polls: DataFrame, units: Units) -> DataFrame:
    """Records with `earliest` and `latest` arrival; null if unknown."""
    lane = Window.partitionBy("topic", "side", "timeline", "partition")
    seen = lane.orderBy(F.desc("place"), F.desc("poll_latest")).rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    # A target partition has one timeline, whichever flow wrote it.
    timeline = F.when(F.col("side") == SOURCE, F.col("flow")).otherwise(0)
    rows = units.of(records).withColumns({"timeline": timeline, "place": F.col("offset") * 2 + 1})
    marks = units.of(polls).select(
        "topic",
        "side",
        "partition",
        timeline.alias("timeline"),
        (F.col("end") * 2).alias("place"),
        F.col("latest").alias("poll_latest"),
        F.struct("earliest", "latest").alias("poll"),
    )
    stamped_target = units.flag_per_unit(lambda each: each.target_time is TimestampType.LOG_APPEND)
    stamped = F.when(F.col("side") == SOURCE, units.stamped_source).otherwise(stamped_target)
    return (
        rows.unionByName(marks, allowMissingColumns=True)
        .withColumn("seen", F.last("poll", ignorenulls=True).over(seen))
        .where("offset is not null")
        .withColumns(
            {
                "earliest": F.when(stamped, F.col("ts")).otherwise(F.col("seen.earliest")),
                "latest": F.when(stamped, F.col("ts")).otherwise(F.col("seen.latest")),
            }
        )
        .drop("timeline", "place", "poll_latest", "poll", "seen")
    )


def pair_records(records: DataFrame, units: Units) -> DataFrame:
    """Source records with t_partition and t_offset of their copy, and the brackets of both.

    *records* come from `add_arrival_brackets`.
    """
    source = F.col("side") == SOURCE

    def of(side: Column, name: str) -> Column:
        return F.max(F.when(side, F.col(name)))

    return (
        _numbered(records, units)
        .groupBy(*GROUP, "k")
        .agg(
            *(of(source, each).alias(each) for each in ("flow", "partition", "offset", "ts", "kh")),
            *(of(source, each).alias(f"s_{each}") for each in ("earliest", "latest")),
            *(
                of(~source, each).alias(f"t_{each}")
                for each in ("partition", "offset", "earliest", "latest")
            ),
        )
        .where("offset is not null and t_offset is not null")
        .drop("group_partition", "group_ts", "k")
    )


def _numbered(records: DataFrame, units: Units) -> DataFrame:
    """Records numbered `k` within their group; of bucketed units only those with a counterpart."""
    bucketed = units.where(lambda each: each.bucketed)
    others = units.where(lambda each: not each.bucketed)
    place = Window.partitionBy(*GROUP, "side").orderBy("flow", "partition", "offset")
    k = F.row_number().over(place)
    if not bucketed:
        return add_group_columns(records, others).withColumn("k", k)
    paired = pair_in_buckets(records, bucketed).where("paired").drop("paired")
    if not others:
        return paired
    return paired.unionByName(add_group_columns(records, others).withColumn("k", k))


def tally_pairs(found: DataFrame, units: Units) -> DataFrame:
    """`matched`, `late` of them, and cells of pairs in the window by (topic, flow, partition)."""
    judged = found.where(units.judged)
    columns = latency_columns(units, F.lit(True))
    return tally_partitions(
        judged.select(
            "topic",
            "flow",
            "partition",
            F.lit(1).alias("matched"),
            is_late(units).cast("int").alias("late"),
            *(each.alias(name) for name, each in columns.items()),
        ),
        ("topic", "flow", "partition"),
        ("matched", "late"),
    )


def find_overtaken(found: DataFrame, units: Units) -> DataFrame:
    """Pairs in the window whose copy precedes that of an earlier record."""
    return _descents(found, units.where(compares_records), ("topic", "flow", "partition"))


def judge_disorder(found: DataFrame, units: Units) -> DataFrame:
    """Out-of-order verdicts, in `VERDICT_COLUMNS`."""
    return verdict_rows(
        find_overtaken(found, units),
        F.lit(verdict_code(Verdict.OUT_OF_ORDER)),
        copy=(F.col("t_partition"), F.col("t_offset")),
        weight=F.lit(1),
    )


def find_disordered_keys(found: DataFrame, units: Units) -> DataFrame:
    """Keys with records that overtook one of their partition: topic, kh, `overtook` (count)."""
    lane = ("topic", "kh", "flow", "partition", "t_partition")
    keyed = found.where("kh is not null")
    return _descents(keyed, units, lane).groupBy("topic", "kh").agg(F.count("*").alias("overtook"))


def _descents(found: DataFrame, units: Units, lane: tuple[str, ...]) -> DataFrame:
    so_far = Window.partitionBy(*lane).orderBy("offset")
    until_here = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    if not units:
        return found.where(F.lit(False))
    return (
        units.of(found)
        .withColumn("furthest", F.max("t_offset").over(until_here))
        .where(units.judged & (F.col("furthest") > F.col("t_offset")))
    )


def sum_source_bytes(records: DataFrame, units: Units) -> DataFrame:
    """`source_bytes` of source records in the window by (topic, flow, partition)."""
    return (
        units.of(records)
        .where((F.col("side") == SOURCE) & units.judged)
        .groupBy("topic", "flow", "partition")
        .agg(F.sum(F.col("size").cast("bigint")).alias("source_bytes"))
    )
