"""The scan's own work stays in one piece of code that Java compiles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mm2slo_audit.ingestion.connector_rows import MAX_HEADERS, sampled
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.audit.record_sample import Sample

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

ROWS = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>"
)
LARGEST = 8000
"""Bytes of a method that HotSpot compiles (-XX:+DontCompileHugeMethods)."""


def test_the_scan_is_one_stage_of_generated_code_that_is_not_too_large(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.createDataFrame([], ROWS).repartition(1)  # else Spark sees that there are none
    kept = sampled(rows, Identity(), Sample(0.01), max_headers=MAX_HEADERS)
    capsys.readouterr()
    kept.explain(mode="codegen")
    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert max(map(int, sizes)) < 0.75 * LARGEST
    kept.explain()
    assert re.search(r"\*\(\d+\) Filter", capsys.readouterr().out)
