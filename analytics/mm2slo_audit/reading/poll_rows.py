"""Arrival brackets as a table for the engine, made without a Python worker."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from mm2slo_audit.engine.schema import side_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_core.audit.record import ArrivalPoll
    from mm2slo_core.timeline_record import Side

_PACKED = (
    "topic int, flow int, side tinyint, partition int, "
    "end array<bigint>, earliest array<bigint>, latest array<bigint>"
)


def poll_frame(spark: SparkSession, polls: Sequence[ArrivalPoll]) -> DataFrame:
    """*polls* with the columns of `ArrivalPoll`.

    They go over to the JVM packed by partition: a row per poll would be pickled one by one.
    """
    rows = []
    for (topic, flow, side, partition), each in groupby(polls, _partition):
        held = list(each)
        rows.append(
            (
                topic,
                flow,
                side_code(side),
                partition,
                [poll.end for poll in held],
                [poll.earliest for poll in held],
                [poll.latest for poll in held],
            )
        )
    packed = spark.createDataFrame(rows, _PACKED, verifySchema=False)
    zipped = F.explode(F.arrays_zip("end", "earliest", "latest")).alias("poll")
    return packed.select("topic", "flow", "side", "partition", zipped).select(
        "topic", "flow", "side", "partition", "poll.end", "poll.earliest", "poll.latest"
    )


def _partition(poll: ArrivalPoll) -> tuple[int, int, Side, int]:
    return poll.topic, poll.flow, poll.side, poll.partition
