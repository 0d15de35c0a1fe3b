"""Reads connector rows and turns them into hashed and sampled records of the audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from mm2slo_audit.engine.fingerprint_columns import record_columns
from mm2slo_audit.engine.record_schema import side_code
from mm2slo_audit.ingestion.range_rows import range_rows
from mm2slo_audit.ingestion.scan_plan import split_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_audit.ingestion.scan_plan import Place, Scan
    from mm2slo_core.audit.record_identity import Identity
    from mm2slo_core.audit.record_sample import Sample

RECORDS_PER_TASK: Final = 1_500_000
"""Partitions with more offsets are read by several tasks."""
_FEW_TOPICS: Final = 16
# Kafka's defaults fetch 1 MB and return 500 records per poll.
CONSUMER: Final[dict[str, str]] = {
    "max.poll.records": "5000",
    "max.partition.fetch.bytes": str(4 << 20),
    "fetch.max.bytes": str(64 << 20),
    "receive.buffer.bytes": str(1 << 20),
}


def read_records(
    spark: SparkSession,
    scan: Scan,
    sample: Sample,
    kafka: Mapping[str, str],
) -> DataFrame:
    """The records of *scan* in *sample*, with the columns of `AuditRecord` and without payloads.

    *kafka*: settings of Java's consumer for the cluster.
    """
    rows = read_rows(spark, scan, kafka, headers=scan.identity.reads_headers)
    kept = sample_rows(rows, scan.identity, sample)
    return _placed(spark, kept, scan.places).select(
        F.col("unit").alias("topic"),
        "flow",
        F.lit(side_code(scan.side)).cast("tinyint").alias("side"),
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        "size",
        "in_records",
        "in_keys",
        "tombstone",
        "masked",
    )


def sample_rows(rows: DataFrame, identity: Identity, sample: Sample) -> DataFrame:
    """Hashes and strata of the connector's *rows* in *sample*."""
    columns = record_columns(identity, sample, headers=identity.reads_headers)
    hashed = rows.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("ts"),
        columns.fp.alias("fp"),
        columns.kh.alias("kh"),
        columns.size.cast("int").alias("size"),
        columns.tombstone.alias("tombstone"),
        columns.masked.alias("masked"),
    )
    drawn = hashed.withColumns({"in_records": columns.in_records, "in_keys": columns.in_keys})
    return drawn if sample.census else drawn.where("in_records OR in_keys")


def read_rows(
    spark: SparkSession, scan: Scan, kafka: Mapping[str, str], *, headers: bool
) -> DataFrame:
    """The connector's rows of *scan*."""
    cores = spark.sparkContext.defaultParallelism
    parts = split_ranges(scan.ranges, min(RECORDS_PER_TASK, -(-scan.offsets // cores)))
    settings = {**CONSUMER, **kafka, "isolation.level": scan.isolation}
    return range_rows(spark, settings, parts, headers=headers)


def _placed(spark: SparkSession, rows: DataFrame, places: Mapping[str, Place]) -> DataFrame:
    """Add unit and flow by topic."""
    if len(places) <= _FEW_TOPICS:
        (_name, first), *others = places.items()
        unit, flow = F.lit(first.unit), F.lit(first.flow)
        for name, place in others:
            here = F.col("topic") == name
            unit = F.when(here, place.unit).otherwise(unit)
            flow = F.when(here, place.flow).otherwise(flow)
        return rows.withColumns({"unit": unit.cast("int"), "flow": flow.cast("int")})
    listed = json.dumps([[name, *place] for name, place in places.items()])
    parsed = F.from_json(F.lit(listed), "array<array<string>>")
    table = spark.range(1).select(F.explode(parsed).alias("place"))
    named = table.select(
        F.col("place")[0].alias("topic"),
        F.col("place")[1].cast("int").alias("unit"),
        F.col("place")[2].cast("int").alias("flow"),
    )
    return rows.join(F.broadcast(named), on="topic", how="inner")
