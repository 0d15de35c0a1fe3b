from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mm2slo_audit.engine.unit_columns import POLL_SCHEMA, RECORD_SCHEMA, poll_row
from mm2slo_audit.spark.landed_records import empty_records, poll_frame
from mm2slo_core.audit.audit_scope import ArrivalPoll
from mm2slo_core.records.timeline_record import Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

POLLS = [
    ArrivalPoll(0, 0, Side.SOURCE, 0, end=10, earliest=None, latest=1_700_000_000_500),
    ArrivalPoll(0, 0, Side.SOURCE, 0, end=30, earliest=1_700_000_000_400, latest=1_700_000_001_500),
    ArrivalPoll(0, 1, Side.TARGET, 7, end=1 << 40, earliest=1, latest=2),
]


def without_python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")


def test_poll_frame_needs_no_python_worker(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_python(spark, monkeypatch)
    frame = poll_frame(spark, POLLS)
    columns = [f"{name} {kind}" for name, kind in frame.dtypes]
    assert ", ".join(columns) == POLL_SCHEMA
    assert [tuple(row) for row in frame.collect()] == [poll_row(each) for each in POLLS]


def test_poll_frame_many_polls_keep_order(spark: SparkSession) -> None:
    polls = [ArrivalPoll(0, 0, Side.SOURCE, 0, at, at, at + 1) for at in range(25_000)]
    assert [row.end for row in poll_frame(spark, polls).collect()] == list(range(25_000))


def test_empty_frames_have_all_columns(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_python(spark, monkeypatch)
    for frame, schema in (
        (poll_frame(spark, []), POLL_SCHEMA),
        (empty_records(spark), RECORD_SCHEMA),
    ):
        assert ", ".join(f"{name} {kind}" for name, kind in frame.dtypes) == schema
        assert frame.collect() == []
