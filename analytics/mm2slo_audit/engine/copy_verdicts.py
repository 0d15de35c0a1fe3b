"""Verdicts on copies: duplicates and replayed blocks, late copies, unmasked records.

A copy is late if an earlier audit read the target before it arrived, and unmasked if it arrived
with a part that the flow must change. Both rules are those of `mm2slo_core.audit.reference`
(`late_copies`, `unmasked_records`), as columns and window functions.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.unit_columns import SOURCE, TARGET, Units
from mm2slo_audit.engine.unmatched_records import DUPLICATED, verdict_code, verdict_rows
from mm2slo_core.audit.audit_scope import Comparison, UnitScope
from mm2slo_core.audit.unit_outcome import Verdict

_PARTITION: Final = ("topic", "partition")
_RECORD_PLACE: Final = (*_PARTITION, "offset")
_RUN: Final = (*_PARTITION, "before")

_BLOCK_BITS: Final = 3
"""A block has eight offsets."""

_BLOCKS_READ: Final = 2
"""Blocks, from that of a copy on, in which its successor was read for sure."""

_BROADCAST_MAX: Final = 1_000_000
"""Copies that fit into the memory of every executor."""


def judge_duplicates(
    records: DataFrame,
    leftover: DataFrame,
    units: Units,
    *,
    census: bool,
    keep: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Verdicts on duplicates, inside and outside the window, in `VERDICT_COLUMNS`.

    A replay is a run of two or more duplicates with no other target record between them; only a
    census reads all records between. Its offsets are those of records in the window. *keep* caches
    a frame that is used twice.
    """
    copies = leftover.where(F.col("kind") == DUPLICATED).select(
        "topic", "partition", "offset", "owner_flow", "owner_partition", "ts", "fp", "kh"
    )
    number = copies.count() if census else 0
    if number:
        few = number <= _BROADCAST_MAX
        copies = _find_runs(records, copies, units, keep, few=few)
    else:
        none = F.lit(None).cast("bigint")
        copies = copies.withColumns({"block": none, "block_end": none, "block_size": none})
    verdict = F.when(F.col("block").isNull(), verdict_code(Verdict.DUPLICATE)).otherwise(
        verdict_code(Verdict.REPLAY)
    )
    return copies.select(
        "topic",
        verdict.alias("verdict"),
        F.col("owner_flow").alias("cell_flow"),
        F.col("owner_partition").alias("cell_partition"),
        F.col("owner_flow").alias("flow"),
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        F.lit(None).cast("int").alias("other_partition"),
        F.lit(None).cast("bigint").alias("other_offset"),
        F.lit(1).alias("weight"),
        "block",
        "block_end",
        "block_size",
    )


def _find_runs(
    records: DataFrame,
    copies: DataFrame,
    units: Units,
    keep: Callable[[DataFrame], DataFrame],
    *,
    few: bool,
) -> DataFrame:
    """Copies with the run that each belongs to.

    Records between two copies are searched close behind the first, in one scan; where none is read
    there, the whole partition is read.
    """
    targets = units.of(records).where(F.col("side") == TARGET).select(*_RECORD_PLACE)
    block = F.shiftright("offset", _BLOCK_BITS)
    behind = copies.select(
        "topic", "partition", F.explode(F.array(block, block + 1)).alias("block")
    ).distinct()
    near = targets.withColumn("block", block).join(
        behind.hint("broadcast" if few else "shuffle_hash"),
        on=["topic", "partition", "block"],
        how="left_semi",
    )
    numbered = keep(_number_copies(near.select(*_RECORD_PLACE), copies))
    in_order = Window.partitionBy(*_RUN).orderBy("offset")
    unseen = block - F.shiftright(F.lag("offset").over(in_order), _BLOCK_BITS) > _BLOCKS_READ
    doubtful = numbered.withColumn("unseen", unseen).where("unseen").select(*_PARTITION).distinct()
    if not doubtful.isEmpty():
        all_of_it = targets.join(doubtful, on=list(_PARTITION), how="left_semi")
        numbered = numbered.join(doubtful, on=list(_PARTITION), how="left_anti").unionByName(
            _number_copies(all_of_it, copies)
        )
    run = Window.partitionBy(*_RUN)
    judged = F.when(units.judged, F.col("offset"))
    in_run = F.count("*").over(run) > 1
    return numbered.withColumns(
        {
            "block": F.when(in_run, F.min(judged).over(run)),
            "block_end": F.when(in_run, F.max(judged).over(run) + 1),
            "block_size": F.when(in_run, F.count(judged).over(run)),
        }
    )


def _number_copies(targets: DataFrame, copies: DataFrame) -> DataFrame:
    """Copies with the number of other target records before them; equal within a run."""
    flagged = targets.join(copies.withColumn("copy", F.lit(1)), on=list(_RECORD_PLACE), how="left")
    until_here = (
        Window.partitionBy(*_PARTITION)
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    others = F.count(F.when(F.col("copy").isNull(), 1)).over(until_here)
    return flagged.withColumn("before", others).where("copy = 1")


def is_late(
    units: Units, source: str = "offset", copy: str = "t_offset", copied_to: str = "t_partition"
) -> Column:
    """Whether a pair is late, from columns topic, flow, partition, ts, and offsets as named."""
    most = max((len(_earlier_scopes(each)) for each in units.scopes), default=0)
    found = (
        _was_missing(units, number, F.col(source), F.col(copy), copied_to) for number in range(most)
    )
    return F.coalesce(reduce(or_, found, F.lit(False)), F.lit(False))


def judge_late(pairs: DataFrame, units: Units) -> DataFrame:
    """Evidence of late copies in `VERDICT_COLUMNS`; the tallies have counted them."""
    return verdict_rows(
        units.of(pairs).where(is_late(units)),
        F.lit(verdict_code(Verdict.LATE)),
        copy=(F.col("t_partition"), F.col("t_offset")),
        weight=F.lit(0),
    )


def _earlier_scopes(unit: UnitScope) -> tuple[UnitScope, ...]:
    return unit.earlier if unit.comparison is not Comparison.LATEST else ()


def _was_missing(units: Units, number: int, offset: Column, copy: Column, copied_to: str) -> Column:
    def of(unit: UnitScope, name: str) -> int | None:
        earlier = _earlier_scopes(unit)
        if number >= len(earlier):
            return None
        window = earlier[number].window
        values = {"start": window.start, "end": window.end}
        return values[name] if name in values else getattr(earlier[number], name)

    def of_source(unit: UnitScope, name: str) -> list[Mapping[int, int | None]]:
        earlier = _earlier_scopes(unit)
        by_flow = {} if number >= len(earlier) else {e.flow: e for e in earlier[number].flows}
        return [
            {each.partition: getattr(each, name) for each in by_flow[flow.flow].partitions}
            if flow.flow in by_flow
            else {}
            for flow in unit.flows
        ]

    def of_target(unit: UnitScope) -> list[Mapping[int, int | None]]:
        earlier = _earlier_scopes(unit)
        if number >= len(earlier):
            return []
        return [{each.partition: each.end for each in earlier[number].partitions}]

    start, end, taken_at, max_pending = (
        units.per_unit(lambda unit, of_name=name: of(unit, of_name))  # type: ignore[misc]
        for name in ("start", "end", "taken_at", "max_pending")
    )
    known_from, source_end, next_offset = (
        units.per_partition(
            lambda unit, of_name=name: of_source(unit, of_name),  # type: ignore[misc]
            F.col("flow"),
        )
        for name in ("known_from", "end", "next_offset")
    )
    target_end = F.coalesce(units.per_partition(of_target, F.lit(0), copied_to), F.lit(0))
    ts = F.col("ts")
    due = F.coalesce(offset < next_offset, F.lit(False)) | (taken_at - ts > max_pending)
    within = (ts >= start) & (ts < end) & (offset >= known_from) & (offset < source_end)
    return F.coalesce(within & (copy >= target_end) & due, F.lit(False))


_SAME_PART: Final = ("topic", "group_ts", "fp", "part", "content")
_OFFSET_ORDER: Final = ("flow", "partition", "offset")


def judge_unmasked(records: DataFrame, units: Units) -> DataFrame:
    """Verdicts on *records* with an unchanged part, in `VERDICT_COLUMNS`."""
    parts = (
        units.of(records)
        .withColumn("group_ts", units.group_ts)
        .select("*", F.posexplode("masked").alias("part", "content"))
        .where("content is not null")
    )
    in_order = Window.partitionBy(*_SAME_PART, "side").orderBy(*_OFFSET_ORDER)
    source = F.col("side") == SOURCE
    pairs = (
        parts.withColumn("k", F.row_number().over(in_order))
        .groupBy(*_SAME_PART, "k")
        .agg(
            *(
                F.max(F.when(source, F.col(each))).alias(each)
                for each in (*_OFFSET_ORDER, "ts", "kh")
            ),
            *(
                F.max(F.when(~source, F.col(each))).alias(f"other_{each}")
                for each in ("partition", "offset")
            ),
        )
        .where("offset is not null and other_offset is not null")
    )
    first = F.row_number().over(Window.partitionBy("topic", *_OFFSET_ORDER).orderBy("part")) == 1
    return verdict_rows(
        pairs.withColumn("first", first).where("first"),
        F.lit(verdict_code(Verdict.UNMASKED)),
        copy=(F.col("other_partition"), F.col("other_offset")),
        weight=F.lit(1),
    )
