"""Records without a copy whose copy compaction may have removed from the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audit_spark import record_frame
from pyspark.sql import functions as F
from small_audit_unit import CENSUS, dst, scope, src

from mm2slo_audit.scope.scope_assembly import CopyMap, Isolations, RunScope
from mm2slo_audit.scope.sync_history import TimedSync, build_sync_runs
from mm2slo_audit.spark import landed_records, removed_records
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.config.config_loader import load_config

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_audit.spark.scan_plan import Scan
    from mm2slo_kafka.partition_offsets import Isolation

pytestmark = pytest.mark.xdist_group("spark")

CONFIG = load_config(
    'clusters: {s0: {bootstrap_servers: "s:1"}, t: {bootstrap_servers: "t:1"}}\n'
    "flows: [{flow: s0->t}]"
)
SOURCE_END, TARGET_END = 20, 30
FIRST_COPY = 10
"""Copies start behind those of another time: record 0 is at 10."""


def counts(
    spark: SparkSession,
    folder: Path,
    copies: set[int],
    present: set[int] | None = None,
    *,
    unit: UnitScope | None = None,
    isolation: Isolation = "read_uncommitted",
) -> dict[Verdict, int]:
    """Verdicts on 20 records, of which the target has *copies*.

    *present*: the target's offsets; by default all but those of missing copies.
    """
    if present is None:
        present = set(range(FIRST_COPY)) | {FIRST_COPY + n for n in copies}
    records = [src(n, n) for n in range(SOURCE_END)] + [dst(FIRST_COPY + n, n) for n in copies]

    def read_records(_spark: object, scan: Scan, *_more: object) -> DataFrame:
        of_side = [each for each in records if each.side is scan.side]
        return record_frame(spark, of_side).withColumn("other_time", F.lit(False))

    def read_rows(_spark: object, scan: Scan, *_more: object, headers: bool) -> DataFrame:
        rows = [
            (each.topic, each.partition, offset)
            for each in scan.ranges
            for offset in sorted(present)
            if each.start <= offset < each.end
        ]
        return spark.createDataFrame(rows, "topic string, partition int, offset bigint")

    unit = unit or scope(source={"end": SOURCE_END}, target={"end": TARGET_END})
    known = CopyMap(
        runs=build_sync_runs([TimedSync(0, FIRST_COPY, 1.0)], dense=True),
        copies_start=0,
        known_from=0,
        dense=True,
        source_end=SOURCE_END,
        target_end=TARGET_END,
        committed=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landed_records, "read_records", read_records)
        patch.setattr(removed_records, "read_rows", read_rows)
        isolations = Isolations(("read_uncommitted",), isolation)
        scoped = RunScope((unit,), isolations=(isolations,), copies=({(0, 0): known},))
        landed = landed_records.land_records(spark, scoped, CONFIG, CENSUS, str(folder), run="r")
        (outcome,) = landed.judge(landed.scopes, CENSUS)
    return {verdict: n for verdict, n in outcome.counts.items() if n}


ALL = set(range(SOURCE_END))
EACH_OFFSET = set(range(TARGET_END))


def test_missing_copies_of_gaps_are_unauditable(spark: SparkSession, tmp_path: Path) -> None:
    found = counts(spark, tmp_path, ALL - {3, 4, 7})
    assert found == {Verdict.MATCHED: 17, Verdict.UNAUDITABLE: 3}


def test_missing_copies_without_gap_are_lost(spark: SparkSession, tmp_path: Path) -> None:
    found = counts(spark, tmp_path, ALL - {3, 4, 7}, EACH_OFFSET)
    assert found == {Verdict.MATCHED: 17, Verdict.LOST: 3}


def test_missing_copies_above_last_gap_are_lost(spark: SparkSession, tmp_path: Path) -> None:
    found = counts(spark, tmp_path, ALL - {3, 15}, EACH_OFFSET - {FIRST_COPY + 3})
    assert found == {Verdict.MATCHED: 18, Verdict.UNAUDITABLE: 1, Verdict.LOST: 1}


@pytest.mark.parametrize("removed", [{0, 1}, {18, 19}, ALL], ids=["first", "last", "all"])
def test_gap_at_edge_of_range_is_found(
    spark: SparkSession, tmp_path: Path, removed: set[int]
) -> None:
    assert counts(spark, tmp_path, ALL - removed)[Verdict.UNAUDITABLE] == len(removed)


def test_gaps_of_transactions_excuse_nothing(spark: SparkSession, tmp_path: Path) -> None:
    found = counts(spark, tmp_path, ALL - {3}, isolation="read_committed")
    assert found == {Verdict.MATCHED: 19, Verdict.LOST: 1}
