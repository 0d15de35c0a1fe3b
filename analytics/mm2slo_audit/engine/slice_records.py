"""Reads the records of selected slices in one scan without an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_columns import GROUP, add_group_columns
from mm2slo_audit.engine.record_schema import SOURCE, TARGET
from mm2slo_audit.engine.slice_selection import Masks, merge_ranges
from mm2slo_audit.engine.unit_columns import literal_table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_audit.engine.slice_selection import Place, Range
    from mm2slo_audit.engine.time_slices import TimeSlices
    from mm2slo_audit.engine.unit_columns import Units

_BLOCK: Final = 1 << 12
"""Offsets per block of the range lookup."""


def select_in_slices(
    spark: SparkSession, records: DataFrame, masks: Masks, slices: TimeSlices
) -> DataFrame:
    """Records in the fine slices of *masks*."""
    rows = [(*key, fine) for key, fine in sorted(masks.items())]
    wanted = literal_table(spark, rows, "topic int, partition int, coarse bigint, wanted bigint")
    found = slices.sliced(records).join(
        F.broadcast(wanted), on=["topic", "partition", "coarse"], how="inner"
    )
    return found.where(F.col("wanted").bitwiseAND(F.col("fine")) != 0).select(*records.columns)


def select_in_partitions(
    spark: SparkSession, records: DataFrame, places: Collection[Place]
) -> DataFrame:
    """All records of the partitions *places*."""
    wanted = literal_table(spark, sorted(places), "topic int, partition int")
    return records.join(F.broadcast(wanted), on=["topic", "partition"], how="left_semi")


def find_slices(
    spark: SparkSession,
    records: DataFrame,
    ranges: Mapping[tuple[int, int, int], Sequence[Range]],
    slices: TimeSlices,
) -> Masks:
    """Slices of the records whose offsets are in *ranges* (by topic, partition and side)."""
    rows = [
        (*place, block, max(low, block * _BLOCK), min(high, (block + 1) * _BLOCK - 1))
        for place, of_place in sorted(ranges.items())
        for low, high in merge_ranges(of_place)
        for block in range(low // _BLOCK, high // _BLOCK + 1)
    ]
    masks = Masks(int)
    if not rows:
        return masks
    columns = "topic int, partition int, side tinyint, block bigint, low bigint, high bigint"
    wanted = literal_table(spark, rows, columns)
    block = F.shiftright("offset", _BLOCK.bit_length() - 1)
    found = (
        records.withColumn("block", block)
        .join(F.broadcast(wanted), on=["topic", "partition", "side", "block"], how="inner")
        .where(F.col("offset").between(F.col("low"), F.col("high")))
    )
    fine = slices.sliced(found).groupBy("topic", "partition", "coarse").agg(F.bit_or("fine"))
    for topic, partition, coarse, mask in fine.collect():
        masks[topic, partition, coarse] = mask
    return masks


def find_repeated_ranges(
    records: DataFrame, slices: TimeSlices
) -> dict[tuple[int, int, int], list[Range]]:
    """Offsets of groups with several source records, in the form of `SliceSelection.ranges`."""
    source = F.col("side") == SOURCE
    ends = [
        function(F.when(side, F.col("offset"))).alias(name)
        for side, low, high in ((source, "s_low", "s_high"), (~source, "t_low", "t_high"))
        for function, name in ((F.min, low), (F.max, high))
    ]
    found = (
        add_group_columns(records, slices.units)
        .groupBy(*GROUP, "partition")
        .agg(F.count(F.when(source, 1)).alias("ns"), *ends)
        .where("ns > 1 and t_low is not null")
    )
    ranges: dict[tuple[int, int, int], list[Range]] = {}
    for row in found.select("topic", "partition", "s_low", "s_high", "t_low", "t_high").collect():
        for side, low, high in (
            (SOURCE, row.s_low, row.s_high),
            (TARGET, row.t_low, row.t_high),
        ):
            ranges.setdefault((row.topic, row.partition, side), []).append((low, high))
    return ranges


def select_repeated(records: DataFrame, units: Units) -> DataFrame:
    """The records of groups with several source records; *records* must hold complete groups."""
    several = F.count(F.when(F.col("side") == SOURCE, 1)).over(Window.partitionBy(*GROUP)) > 1
    rows = add_group_columns(records, units).withColumn("several", several).where("several")
    return rows.select(*records.columns)
