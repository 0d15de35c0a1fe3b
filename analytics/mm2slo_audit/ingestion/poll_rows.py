"""Arrival polls as a Spark table, built without a Python worker."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mm2slo_audit.engine.record_schema import side_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from mm2slo_core.audit.audit_record import ArrivalPoll
    from mm2slo_core.timeline_record import Side

_PACKED = (
    "topic int, flow int, side tinyint, partition int, "
    "end array<bigint>, earliest array<bigint>, latest array<bigint>"
)
_POLLS_PER_LINE = 10_000


def poll_frame(spark: SparkSession, polls: Sequence[ArrivalPoll]) -> DataFrame:
    """*polls*, grouped by partition, with the columns of `ArrivalPoll`.

    `SparkSession.createDataFrame` would need a Python worker on the executors.
    """
    parsed = F.from_json("value", _PACKED).alias("packed")
    zipped = F.explode(F.arrays_zip("packed.end", "packed.earliest", "packed.latest"))
    names = ("topic", "flow", "side", "partition")
    rows = _text_frame(spark, _lines(polls)).select(parsed)
    return rows.select(*(f"packed.{name}" for name in names), zipped.alias("poll")).select(
        *names, "poll.end", "poll.earliest", "poll.latest"
    )


def _lines(polls: Sequence[ArrivalPoll]) -> Iterator[str]:
    """JSON of the columns `_PACKED`: fewer rows to pass to the JVM."""
    for (topic, flow, side, partition), each in groupby(polls, _partition):
        held = list(each)
        for first in range(0, len(held), _POLLS_PER_LINE):
            part = held[first : first + _POLLS_PER_LINE]
            yield json.dumps(
                {
                    "topic": topic,
                    "flow": flow,
                    "side": side_code(side),
                    "partition": partition,
                    "end": [poll.end for poll in part],
                    "earliest": [poll.earliest for poll in part],
                    "latest": [poll.latest for poll in part],
                }
            )


def _partition(poll: ArrivalPoll) -> tuple[int, int, Side, int]:
    return poll.topic, poll.flow, poll.side, poll.partition


def _text_frame(spark: SparkSession, lines: Iterable[str]) -> DataFrame:
    """One column, `value`. PySpark has no public API for a local table of the JVM."""
    jvm = spark.sparkContext._jvm
    if jvm is None:
        raise RuntimeError("the Spark session has no JVM: Spark Connect is not supported")
    held = jvm.java.util.ArrayList()
    for line in lines:
        held.add(line)
    strings = jvm.org.apache.spark.sql.Encoders.STRING()
    return DataFrame(spark._jsparkSession.createDataset(held, strings).toDF(), spark)
