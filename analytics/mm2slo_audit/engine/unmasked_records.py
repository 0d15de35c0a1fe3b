"""Records that arrived with a part that the flow must change.

The rule of `mm2slo_core.audit.reference.unmasked_records` as window functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.leftover_verdicts import verdict_code, verdict_rows
from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mm2slo_audit.engine.unit_columns import Units

_ALIKE: Final = ("topic", "group_ts", "fp", "part", "content")
_PLACE: Final = ("flow", "partition", "offset")


def judge_unmasked(records: DataFrame, units: Units) -> DataFrame:
    """Verdicts on *records* with an unchanged part, in `VERDICT_COLUMNS`."""
    parts = (
        units.of(records)
        .withColumn("group_ts", units.group_ts)
        .select("*", F.posexplode("masked").alias("part", "content"))
        .where("content is not null")
    )
    in_order = Window.partitionBy(*_ALIKE, "side").orderBy(*_PLACE)
    source = F.col("side") == SOURCE
    pairs = (
        parts.withColumn("k", F.row_number().over(in_order))
        .groupBy(*_ALIKE, "k")
        .agg(
            *(F.max(F.when(source, F.col(each))).alias(each) for each in (*_PLACE, "ts", "kh")),
            *(
                F.max(F.when(~source, F.col(each))).alias(f"other_{each}")
                for each in ("partition", "offset")
            ),
        )
        .where("offset is not null and other_offset is not null")
    )
    first = F.row_number().over(Window.partitionBy("topic", *_PLACE).orderBy("part")) == 1
    return verdict_rows(
        pairs.withColumn("first", first).where("first"),
        F.lit(verdict_code(Verdict.UNMASKED)),
        copy=(F.col("other_partition"), F.col("other_offset")),
        weight=F.lit(1),
    )
