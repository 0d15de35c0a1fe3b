"""Pairs of a source record and its copy, record by record.

The exact form of what `matching` derives from counts: records are numbered within their group, and
the k-th of the source belongs to the k-th of the target. It takes a further exchange, so it is for
what counts do not tell: identical records, keys instead of partitions, topics that stamp records
on arrival, and disorder.

Order is judged from a part of the pairs just as well, as long as both of any two of which one
overtook the other are in it: between two that are neighbours only in the part, no other can lie on
the target, for it would have overtaken one of them, or been overtaken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.bucket_pairs import pair_in_buckets
from mm2slo_audit.engine.group_columns import GROUP, grouped
from mm2slo_audit.engine.latency_cells import latency_columns
from mm2slo_audit.engine.leftover_verdicts import FOUND, code
from mm2slo_audit.engine.match_tally import partition_tally
from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_audit.engine.unit_columns import compares_records
from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units


def add_arrival_brackets(records: DataFrame, polls: DataFrame, units: Units) -> DataFrame:
    """Records with `earliest` and `latest` arrival; null where it is not known."""
    lane = Window.partitionBy("topic", "side", "timeline", "partition")
    seen = lane.orderBy(F.desc("place"), F.desc("poll_latest")).rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    # A target partition has one timeline, whatever flow wrote it down.
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
    stamped_target = units.flag(lambda each: each.target_time is TimestampType.LOG_APPEND)
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


def pairs(records: DataFrame, units: Units) -> DataFrame:
    """Source records with the place of their copy: t_partition, t_offset, and both brackets.

    Of records as `add_arrival_brackets` gives them.
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
    """The records of a group with `k`; those of buckets only where they have their counterpart."""
    bucketed = units.where(lambda each: each.bucketed)
    others = units.where(lambda each: not each.bucketed)
    place = Window.partitionBy(*GROUP, "side").orderBy("flow", "partition", "offset")
    k = F.row_number().over(place)
    if not bucketed:
        return grouped(records, others).withColumn("k", k)
    paired = pair_in_buckets(records, bucketed).where("paired").drop("paired")
    if not others:
        return paired
    return paired.unionByName(grouped(records, others).withColumn("k", k))


def tally_pairs(found: DataFrame, units: Units) -> DataFrame:
    """Judged pairs by (topic, flow, partition), as `matching.tally` has them: `matched`, cells."""
    judged = found.where(units.judged)
    columns = latency_columns(units, F.lit(True))
    return partition_tally(
        judged.select(
            "topic",
            "flow",
            "partition",
            F.lit(1).alias("matched"),
            *(each.alias(name) for name, each in columns.items()),
        ),
        ("topic", "flow", "partition"),
        ("matched",),
    )


def overtaken(found: DataFrame, units: Units) -> DataFrame:
    """Judged pairs whose copy lies before that of their predecessor, where that means disorder."""
    return _descents(found, units.where(compares_records), ("topic", "flow", "partition"))


def disorder(found: DataFrame, units: Units) -> DataFrame:
    """Verdicts on what `overtaken` finds, in the columns `FOUND`."""
    none = F.lit(None).cast("bigint")
    return overtaken(found, units).select(
        "topic",
        F.lit(code(Verdict.OUT_OF_ORDER)).alias("verdict"),
        F.col("flow").alias("cell_flow"),
        F.col("partition").alias("cell_partition"),
        "flow",
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        F.col("t_partition").alias("other_partition"),
        F.col("t_offset").alias("other_offset"),
        F.lit(1).alias("weight"),
        *(none.alias(each) for each in FOUND[-3:]),
    )


def find_disordered_keys(found: DataFrame, units: Units) -> DataFrame:
    """Keys of which a judged record overtook an earlier one of its partition: topic, kh, overtook.

    `overtook` counts these records.
    """
    lane = ("topic", "kh", "flow", "partition", "t_partition")
    keyed = found.where("kh is not null")
    return _descents(keyed, units, lane).groupBy("topic", "kh").agg(F.count("*").alias("overtook"))


def _descents(found: DataFrame, units: Units, lane: tuple[str, ...]) -> DataFrame:
    before = F.lag("t_offset").over(Window.partitionBy(*lane).orderBy("offset"))
    if not units:
        return found.where(F.lit(False))
    return (
        units.of(found)
        .withColumn("before", before)
        .where(units.judged & (F.col("before") > F.col("t_offset")))
    )


def source_bytes(records: DataFrame, units: Units) -> DataFrame:
    """`source_bytes` of judged source records by (topic, flow, partition)."""
    return (
        units.of(records)
        .where((F.col("side") == SOURCE) & units.judged)
        .groupBy("topic", "flow", "partition")
        .agg(F.sum(F.col("size").cast("bigint")).alias("source_bytes"))
    )
