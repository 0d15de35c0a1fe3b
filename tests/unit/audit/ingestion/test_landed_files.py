"""Landed files: records are read back as they were written."""

from itertools import product
from pathlib import Path

import pytest
from audit_spark import record_frame
from pyspark.sql import SparkSession

from mm2slo_audit.engine.unit_columns import RECORD_SCHEMA, record_row
from mm2slo_audit.spark.landed_records import read_landed, write_landed
from mm2slo_core.audit.audit_scope import AuditRecord
from mm2slo_core.records.timeline_record import Side

pytestmark = pytest.mark.xdist_group("spark")

BOTH = (False, True)


def records(*, masked: bool) -> list[AuditRecord]:
    """All flags of both sides, with the lowest and highest numbers."""
    return [
        AuditRecord(
            topic=number,
            flow=(0, 1, 1_000_000)[number % 3],
            side=side,
            partition=((1 << 24) - 1, 0)[number % 2],
            offset=(1 << 63) - 1 - number,
            timestamp=number,
            fingerprint=-(1 << 63) + number,
            key_hash=None if number % 4 == 0 else -number,
            size=(1 << 31) - 1,
            in_records=in_records,
            in_keys=in_keys,
            tombstone=tombstone,
            masked=(7, number) if masked else (),
        )
        for number, (side, in_records, in_keys, tombstone) in enumerate(
            product(Side, BOTH, BOTH, BOTH)
        )
    ]


@pytest.mark.parametrize("masked", [False, True])
def test_read_landed_returns_what_was_written(
    spark: SparkSession, tmp_path: Path, masked: bool
) -> None:
    written = records(masked=masked)
    path = f"{tmp_path}/records"
    write_landed(record_frame(spark, written), path, masked=masked)
    found = read_landed(spark, [path])
    assert ", ".join(f"{name} {kind}" for name, kind in found.dtypes) == RECORD_SCHEMA
    rows = [tuple(row) for row in found.orderBy("topic").collect()]
    expected = [record_row(each) for each in written]
    assert rows == (expected if masked else [(*row[:-1], None) for row in expected])


def test_read_landed_unites_files_with_and_without_masked_parts(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = f"{tmp_path}/records"
    for masked in (False, True):
        write_landed(record_frame(spark, records(masked=masked)), path, masked=masked)
    found = read_landed(spark, [path]).where("topic = 3").orderBy("masked").collect()
    assert [row.masked for row in found] == [None, [7, 3]]
