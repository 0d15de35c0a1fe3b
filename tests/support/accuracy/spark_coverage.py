"""Samples drawn and judged in Spark, with the engine's expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from audit_spark import poll_frame, record_frame
from generated_units import Generated
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from accuracy.bound_coverage import RATE, Coverage, Tally, true_values
from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.spark.connector_rows import is_sampled
from mm2slo_core.audit.fingerprint import Sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 25
"""Samples that are judged together, each as a unit."""


def coverage_in_spark(
    spark: SparkSession, generated: Generated, salts: Sequence[int]
) -> dict[str, Coverage]:
    """`coverage`, computed by Spark."""
    records = record_frame(spark, generated.records).persist()
    polls = poll_frame(spark, ())
    tally = Tally(true_values(generated))
    for start in range(0, len(salts), _AT_ONCE):
        some = salts[start : start + _AT_ONCE]
        drawn = [
            _drawn(records, Sample(RATE, salt)).withColumn("topic", fn.lit(index))
            for index, salt in enumerate(some)
        ]
        scopes = [replace(generated.scope, index=index) for index in range(len(some))]
        together = reduce(DataFrame.unionByName, drawn).persist()
        judged = judge(spark, together, polls, scopes, Sample(RATE))
        for salt, outcome in zip(some, judged, strict=True):
            tally.add(outcome, Sample(RATE, salt))
        together.unpersist()
    records.unpersist()
    return tally.coverage()


def _drawn(records: DataFrame, sample: Sample) -> DataFrame:
    in_keys = fn.coalesce(is_sampled(sample, fn.col("kh"), sample.key_threshold), fn.lit(False))
    marked = records.withColumns(
        {
            "in_records": is_sampled(sample, fn.col("fp"), sample.record_threshold),
            "in_keys": in_keys,
        }
    )
    return marked.where("in_records or in_keys")
