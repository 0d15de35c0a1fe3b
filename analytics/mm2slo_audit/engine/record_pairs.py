"""Pairs of a source record and its copy, record by record; pairs of keys; key affinity.

The exact form of what `match_tally` derives from counts: records are numbered within their group,
and the k-th of the source belongs to the k-th of the target. This takes another exchange, so it is
used only where counts do not decide: identical records, keys instead of partitions, topics with
LogAppendTime, and disorder. Order can be judged from a subset of the pairs that holds both records
of every overtaking.

In compacted topics only the newest record of each key is compared. Key affinity is whether the
records of a key stayed in their partition.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.match_tally import latency_columns, tally_partitions
from mm2slo_audit.engine.record_verdicts import (
    MISSING,
    UNEXPLAINED,
    UNMATCHED_COLUMNS,
    is_late,
    pair_in_buckets,
    verdict_code,
    verdict_rows,
)
from mm2slo_audit.engine.unit_columns import (
    GROUP,
    SOURCE,
    Units,
    add_group_columns,
    compares_records,
    target_table,
)
from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_core.audit.unit_outcome import Verdict


def add_arrival_brackets(records: DataFrame, polls: DataFrame | None, units: Units) -> DataFrame:
    """Records with `earliest` and `latest` arrival, null if unknown; *polls* None: no polls."""
    stamped_target = units.flag_per_unit(lambda each: each.target_time is TimestampType.LOG_APPEND)
    stamped = F.when(F.col("side") == SOURCE, units.stamped_source).otherwise(stamped_target)
    if polls is None:
        time = F.when(stamped, F.col("ts"))
        return units.of(records).withColumns({"earliest": time, "latest": time})
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
        _number_in_groups(records, units)
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


def _number_in_groups(records: DataFrame, units: Units) -> DataFrame:
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
    """`source_bytes` of source records in the window by (topic, flow, partition).

    `keyless`: how many of them have no key.
    """
    return (
        units.of(records)
        .where((F.col("side") == SOURCE) & units.judged)
        .groupBy("topic", "flow", "partition")
        .agg(
            F.sum(F.col("size").cast("bigint")).alias("source_bytes"),
            F.count(F.when(F.col("kh").isNull(), 1)).alias("keyless"),
        )
    )


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
    # Kafka's LogCleaner keeps a tombstone for delete.retention.ms: until then it must be on the
    # target, later either side may have removed it.
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
    """Missing and unexplained records, in `UNMATCHED_COLUMNS`."""
    uses_time = units.flag_per_unit(lambda each: each.identity.timestamp)
    open_ = ~F.col("settled")
    missing = compared.where(open_ & F.col("offset").isNotNull())
    alone = F.col("offset").isNull() & ~F.col("t_tombstone")
    as_new = F.col("offset").isNotNull() & uses_time & (F.col("t_ts") >= F.col("newest"))
    unexplained = compared.where(
        open_ & F.col("first_of_key") & F.col("t_offset").isNotNull() & (alone | as_new)
    )
    return _leftover_rows(missing, MISSING, "", F.col("flow"), units).unionByName(
        _leftover_rows(unexplained, UNEXPLAINED, "t_", F.col("t_flow"), units)
    )


def _leftover_rows(
    rows: DataFrame, kind: int, prefix: str, flow: Column, units: Units
) -> DataFrame:
    chosen = rows.select(
        "topic",
        F.lit(kind).alias("kind"),
        flow.alias("flow"),
        "kh",
        *(F.col(f"{prefix}{each}").alias(each) for each in ("partition", "offset", "ts", "fp")),
    )
    none = F.lit(None).cast("int")
    # Duplicates are not looked for, so the number of equal records is not needed.
    return chosen.withColumns(
        {
            "group_partition": F.lit(-1),
            "group_ts": units.group_ts,
            "owner_flow": none,
            "owner_partition": none,
            "equal_records": none.cast("bigint"),
            "decided": F.lit(False),
        }
    ).select(*UNMATCHED_COLUMNS)


_KEY_SIZES: Final = ("records", "copies", "strays", "overtook")


def count_by_key(
    spark: SparkSession, records: DataFrame, disordered: DataFrame | None, units: Units
) -> DataFrame:
    """One row per key that is on both sides: topic, kh and record counts.

    `records`: on the source; `copies`: on the target; `strays`: copies that moved; `overtook`:
    source records that overtook another, from *disordered* (by topic and kh; None: order is not
    judged). Both groupings aggregate before the exchange, so few rows move.
    """
    source = F.col("side") == SOURCE
    counted = units.of(records).where(F.col("in_keys") & F.col("kh").isNotNull() & units.judged)
    if any(each.auditable_from > 0 for unit in units.scopes for each in unit.partitions):
        known = F.broadcast(target_table(spark, units))
        counted = counted.join(known, on=["topic", "partition"], how="left").where(
            source | (F.col("offset") >= F.coalesce("auditable_from", F.lit(0)))
        )
    by_partition = counted.groupBy("topic", "kh", "partition").agg(
        F.count(F.when(source, 1)).alias("ns"), F.count(F.when(~source, 1)).alias("nd")
    )
    home, away = F.col("ns") > 0, F.col("nd") > 0
    fullest = F.sort_array(F.collect_list(F.when(away, F.col("nd"))), asc=False).alias("fullest")
    renumbered = bool(units.where(lambda each: not compares_records(each)))
    by_key = by_partition.groupBy("topic", "kh").agg(
        F.count(F.when(home, 1)).alias("homes"),
        F.sum("ns").alias("records"),
        F.sum("nd").alias("copies"),
        F.sum(F.when(home, 0).otherwise(F.col("nd"))).alias("elsewhere"),
        # A list takes the aggregation out of generated code.
        *([fullest] if renumbered else []),
    )
    strays = F.col("elsewhere")
    if renumbered:
        # Where partition numbers differ, a key may be in as many partitions as on the source.
        beyond = F.col("copies") - F.aggregate(
            F.slice("fullest", 1, F.col("homes")), F.lit(0).cast("bigint"), lambda a, b: a + b
        )
        strays = F.when(units.flag_per_unit(compares_records), strays).otherwise(beyond)
    both = by_key.where("homes > 0 and copies > 0").select(
        "topic", "kh", "records", "copies", strays.alias("strays")
    )
    if disordered is None:
        return both.withColumn("overtook", F.lit(0).cast("bigint"))
    return both.join(disordered, on=["topic", "kh"], how="left").fillna(0, ["overtook"])


def tally_affinity(found: DataFrame, *, by_size: bool) -> DataFrame:
    """Keys and their summed counts by topic, with *by_size* also by the counts of one key."""
    sizes = tuple(F.col(each).alias(f"{each}_of_one") for each in _KEY_SIZES) if by_size else ()
    return found.groupBy("topic", *sizes).agg(
        F.count("*").alias("keys_"),
        F.count(F.when(F.col("strays") > 0, 1)).alias("keys_split"),
        F.count(F.when(F.col("overtook") > 0, 1)).alias("keys_disordered"),
        *(F.sum(each).alias(each) for each in _KEY_SIZES),
    )
