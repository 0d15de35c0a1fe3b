"""Duplicates, and the blocks of them that were copied again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.fates import code
from mm2slo_audit.engine.schema import TARGET
from mm2slo_audit.engine.unmatched import DUPLICATED
from mm2slo_core.audit.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mm2slo_audit.engine.units import Units

_RUN = ("topic", "partition", "before")


def duplicates(records: DataFrame, leftover: DataFrame, units: Units, *, census: bool) -> DataFrame:
    """Verdicts on duplicates, judged or not, in the columns `FOUND`.

    A replay is a run of two or more with no other target record read between them; only a census
    reads all that lie between. It is named by its judged records.
    """
    copies = leftover.where(F.col("kind") == DUPLICATED).select(
        "topic", "partition", "offset", "owner_flow", "owner_partition", "ts", "fp", "kh"
    )
    if census:
        copies = _in_runs(records, copies, units)
    else:
        none = F.lit(None).cast("bigint")
        copies = copies.withColumns({"block": none, "block_end": none, "block_size": none})
    verdict = F.when(F.col("block").isNull(), code(Verdict.DUPLICATE)).otherwise(
        code(Verdict.REPLAY)
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
        "block",
        "block_end",
        "block_size",
    )


def _in_runs(records: DataFrame, copies: DataFrame, units: Units) -> DataFrame:
    where = ["topic", "partition", "offset"]
    targets = units.of(records).where(F.col("side") == TARGET).select(*where)
    flagged = targets.join(copies.withColumn("copy", F.lit(1)), on=where, how="left")
    until_here = (
        Window.partitionBy("topic", "partition")
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    # Copies with the same number of other records before them lie side by side.
    numbered = flagged.withColumn(
        "before", F.count(F.when(F.col("copy").isNull(), 1)).over(until_here)
    ).where("copy = 1")
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
