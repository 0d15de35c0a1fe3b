"""The scan is one stage of generated code that Java compiles."""

import re
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mm2slo_audit.spark.connector_rows import sample_rows
from mm2slo_core.audit.fingerprint import Identity, Sample

pytestmark = pytest.mark.xdist_group("spark")

COLUMNS = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestampType int,"
    " key binary, value binary"
)
HEADERS = "headers array<struct<key: string, value: binary>>"
LARGEST = 8000
"""Bytes of a method that HotSpot compiles (-XX:+DontCompileHugeMethods)."""


def connector_rows(spark: SparkSession, *, headers: bool) -> DataFrame:
    """No rows, as `range_rows` has them: the stage also contains their conversion."""
    columns = f"{COLUMNS}, {HEADERS}" if headers else COLUMNS
    schema = spark.createDataFrame([], columns)._jdf.schema()
    jvm: Any = spark.sparkContext._jvm
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.InternalRow")
    rows = spark.sparkContext._jsc.sc().emptyRDD(jvm.scala.reflect.ClassTag.apply(kind))
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rows, schema, False), spark)


@pytest.mark.parametrize("rate", [0.01, 1.0])
@pytest.mark.parametrize("headers", [False, True])
def test_sample_rows_is_one_compiled_stage(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], rate: float, headers: bool
) -> None:
    rows = connector_rows(spark, headers=headers)
    kept = sample_rows(
        rows,
        Identity(headers=headers),
        Sample(rate),
        other_time=F.col("timestampType") == 1,
        keep_other_times=True,
    )
    capsys.readouterr()
    kept.explain(mode="codegen")
    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert max(map(int, sizes)) < 0.75 * LARGEST
    kept.explain()
    filtered = re.search(r"\*\(\d+\) Filter", capsys.readouterr().out) is not None
    assert filtered == (rate < 1)
