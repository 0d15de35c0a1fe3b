"""Verdicts on missing source records and unexplained target records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.unit_columns import compares_records, source_table, target_table
from mm2slo_audit.engine.unmatched_records import DUPLICATED, MISSING, UNEXPLAINED
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from mm2slo_audit.engine.unit_columns import Units

VERDICTS: Final = tuple(Verdict)
"""Verdict codes are indexes of this list."""
VERDICT_COLUMNS: Final = (
    "topic",
    "verdict",
    "cell_flow",
    "cell_partition",
    "flow",
    "partition",
    "offset",
    "ts",
    "fp",
    "kh",
    "other_partition",
    "other_offset",
    "weight",
    "block",
    "block_end",
    "block_size",
)
"""Columns of a verdict: the partition that counts it (`cell_flow` null: a target partition), then
its evidence. `weight` is added to the count: 0 if already counted, -1 to undo a count (not
evidence). `block_end` and `block_size` describe its replay."""


def verdict_code(verdict: Verdict) -> int:
    return VERDICTS.index(verdict)


def verdict_rows(
    rows: DataFrame,
    verdict: Column,
    *,
    copy: tuple[Column, Column],
    weight: Column,
    cell_flow: Column | None = None,
) -> DataFrame:
    """`VERDICT_COLUMNS` of records that are no replays; *copy* is partition and offset.

    The records are counted by their own flow, or by *cell_flow*.
    """
    partition, offset = copy
    return rows.select(
        "topic",
        verdict.alias("verdict"),
        (F.col("flow") if cell_flow is None else cell_flow).alias("cell_flow"),
        F.col("partition").alias("cell_partition"),
        "flow",
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        partition.alias("other_partition"),
        offset.alias("other_offset"),
        weight.alias("weight"),
        *(F.lit(None).cast("bigint").alias(each) for each in VERDICT_COLUMNS[-3:]),
    )


def judge_leftover(spark: SparkSession, leftover: DataFrame, units: Units) -> DataFrame:
    """Verdicts (`VERDICT_COLUMNS`) on missing and unexplained records, also outside the window."""
    # A duplicate that is decided was counted as extra before its record was found elsewhere.
    rows = leftover.where(F.col("kind").isin(MISSING, UNEXPLAINED) | F.col("decided"))
    moved = _paired(
        rows, "moved", ("topic", "group_ts", "fp"), units.flag_per_unit(compares_records)
    )
    altered = _paired(
        moved,
        "altered",
        ("topic", "moved", "ts", "kh", "neighbourhood"),
        ~F.col("moved") & units.flag_per_unit(lambda each: each.identity.timestamp),
        # Records without a key are distinguished by their partition, where that is comparable.
        neighbourhood=F.when(F.col("kh").isNull(), F.col("group_partition")),
    )
    missing = altered.where(F.col("kind") == MISSING).join(
        F.broadcast(source_table(spark, units)), on=["topic", "flow", "partition"], how="left"
    )
    again = F.col("kind") == DUPLICATED
    paired, decided = F.col("moved") | F.col("altered") | again, F.col("decided")
    foreign = altered.where((F.col("kind") != MISSING) & (~paired | decided)).join(
        F.broadcast(target_table(spark, units)), on=["topic", "partition"], how="left"
    )
    offset = F.col("offset")
    age = units.per_unit(lambda each: each.taken_at) - F.col("ts")
    still_open = (
        F.when(offset < F.col("known_from"), verdict_code(Verdict.UNAUDITABLE))
        .when(offset < F.col("next_offset"), verdict_code(Verdict.LOST))
        .when(age > units.per_unit(lambda each: each.max_pending), verdict_code(Verdict.OVERDUE))
        .otherwise(verdict_code(Verdict.PENDING))
    )
    on_source = (
        F.when(F.col("moved"), verdict_code(Verdict.MOVED))
        .when(F.col("altered"), verdict_code(Verdict.ALTERED))
        .otherwise(still_open)
    )
    on_target = F.when(
        offset < F.col("auditable_from"), verdict_code(Verdict.UNAUDITABLE)
    ).otherwise(verdict_code(Verdict.EXTRA))
    # A verdict decided before the record was found elsewhere is undone.
    verdicts = F.when(
        decided & paired, F.array(_weighed(on_source, F.lit(1)), _weighed(still_open, F.lit(-1)))
    ).otherwise(F.array(_weighed(on_source, F.when(decided, 0).otherwise(1))))
    weight = F.when(paired, -1).when(decided, 0).otherwise(1)
    return _found(missing.withColumn("judgement", F.explode(verdicts)), F.col("flow")).unionByName(
        _found(
            foreign.withColumn("judgement", _weighed(on_target, weight)), F.lit(None).cast("int")
        )
    )


def _weighed(verdict: Column, weight: Column) -> Column:
    return F.struct(verdict.alias("verdict"), weight.alias("weight"))


def _found(rows: DataFrame, flow: Column) -> DataFrame:
    return verdict_rows(
        rows,
        F.col("judgement.verdict"),
        copy=(
            F.coalesce("moved_partition", "altered_partition"),
            F.coalesce("moved_offset", "altered_offset"),
        ),
        weight=F.col("judgement.weight"),
        cell_flow=flow,
    )


def _paired(
    rows: DataFrame,
    name: str,
    trait: tuple[str, ...],
    eligible: Column,
    *,
    neighbourhood: Column | None = None,
) -> DataFrame:
    """Pair missing and unexplained records of one *trait*, the k-th with the k-th.

    Adds *name* (whether it is in a pair) and the place of a missing record's counterpart.
    """
    if neighbourhood is not None:
        rows = rows.withColumn("neighbourhood", neighbourhood)
    alike = Window.partitionBy(*trait)
    in_order = Window.partitionBy(*trait, "kind").orderBy("flow", "partition", "offset")
    of_missing, of_unexplained = (
        F.count(F.when(F.col("kind") == kind, 1)).over(alike) for kind in (MISSING, UNEXPLAINED)
    )
    counted = rows.withColumns(
        {"fewer": F.least(of_missing, of_unexplained), "k": F.row_number().over(in_order)}
    )
    couple = Window.partitionBy(*trait, "k")
    joined = eligible & (F.col("k") <= F.col("fewer"))
    other = {
        f"{name}_{each}": F.when(
            joined, F.max(F.when(F.col("kind") == UNEXPLAINED, F.col(each))).over(couple)
        )
        for each in ("partition", "offset")
    }
    return counted.withColumns({name: joined, **other}).drop("fewer", "k")
