"""Verdicts on duplicates and replayed blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.leftover_verdicts import verdict_code
from mm2slo_audit.engine.record_schema import TARGET
from mm2slo_audit.engine.unmatched_records import DUPLICATED
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from mm2slo_audit.engine.unit_columns import Units

_PLACE: Final = ("topic", "partition")
_WHERE: Final = (*_PLACE, "offset")
_RUN: Final = (*_PLACE, "before")
_BLOCK_BITS: Final = 3
"""A block has eight offsets."""
_SEEN: Final = 2
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
        copies = _in_runs(records, copies, units, keep, few=few)
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


def _in_runs(
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
    targets = units.of(records).where(F.col("side") == TARGET).select(*_WHERE)
    block = F.shiftright("offset", _BLOCK_BITS)
    behind = copies.select(
        "topic", "partition", F.explode(F.array(block, block + 1)).alias("block")
    ).distinct()
    near = targets.withColumn("block", block).join(
        behind.hint("broadcast" if few else "shuffle_hash"),
        on=["topic", "partition", "block"],
        how="left_semi",
    )
    numbered = keep(_numbered(near.select(*_WHERE), copies))
    in_order = Window.partitionBy(*_RUN).orderBy("offset")
    unseen = block - F.shiftright(F.lag("offset").over(in_order), _BLOCK_BITS) > _SEEN
    doubtful = numbered.withColumn("unseen", unseen).where("unseen").select(*_PLACE).distinct()
    if not doubtful.isEmpty():
        all_of_it = targets.join(doubtful, on=list(_PLACE), how="left_semi")
        numbered = numbered.join(doubtful, on=list(_PLACE), how="left_anti").unionByName(
            _numbered(all_of_it, copies)
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


def _numbered(targets: DataFrame, copies: DataFrame) -> DataFrame:
    """Copies with the number of other target records before them; equal within a run."""
    flagged = targets.join(copies.withColumn("copy", F.lit(1)), on=list(_WHERE), how="left")
    until_here = (
        Window.partitionBy(*_PLACE)
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    others = F.count(F.when(F.col("copy").isNull(), 1)).over(until_here)
    return flagged.withColumn("before", others).where("copy = 1")
