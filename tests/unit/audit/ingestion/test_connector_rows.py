"""The scan is one stage of generated code that Java compiles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mm2slo_audit.spark.connector_rows import sample_rows
from mm2slo_core.audit.fingerprint import Identity, Sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

ROWS = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>"
)
LARGEST = 8000
"""Bytes of a method that HotSpot compiles (-XX:+DontCompileHugeMethods)."""


def test_sample_rows_is_one_compiled_stage(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.createDataFrame([], ROWS).repartition(
        1
    )  # otherwise Spark sees that the frame is empty
    kept = sample_rows(rows, Identity(), Sample(0.01))
    capsys.readouterr()
    kept.explain(mode="codegen")
    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert max(map(int, sizes)) < 0.75 * LARGEST
    kept.explain()
    assert re.search(r"\*\(\d+\) Filter", capsys.readouterr().out)
