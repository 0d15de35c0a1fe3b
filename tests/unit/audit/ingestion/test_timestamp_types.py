"""Records that keep the timestamp type of a former `message.timestamp.type` of their topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_spark import record_frame
from pyspark.sql import functions as F
from small_audit_unit import CENSUS, dst, scope, src

from mm2slo_audit.scope.scope_assembly import Isolations, RunScope
from mm2slo_audit.spark import landed_records
from mm2slo_audit.spark.connector_rows import sample_rows
from mm2slo_core.audit.audit_scope import TimestampType, UnitScope
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.records.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_audit.spark.scan_plan import Scan
    from mm2slo_core.audit.audit_scope import AuditRecord
    from mm2slo_core.audit.unit_outcome import UnitOutcome

pytestmark = pytest.mark.xdist_group("spark")

CONFIG = """
clusters: {s0: {bootstrap_servers: "s:1"}, t: {bootstrap_servers: "t:1"}}
flows: [{flow: s0->t}]
"""


def judged(
    spark: SparkSession, folder: Path, unit: UnitScope, of_side: Mapping[Side, DataFrame]
) -> UnitOutcome:
    """Land and judge the records of *of_side*, whose column `other_time` is set."""

    def read(_spark: object, scan: Scan, _sample: object, _kafka: object) -> DataFrame:
        content = "fp + ts" if scan.identity.timestamp else "fp"
        return of_side[scan.side].withColumn("fp", F.expr(content))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landed_records, "read_records", read)
        isolations = Isolations(("read_uncommitted",), "read_uncommitted")
        scoped = RunScope((unit,), isolations=(isolations,), copies=({},))
        landed = landed_records.land_records(
            spark, scoped, load_config(CONFIG), CENSUS, str(folder), run="r"
        )
    (outcome,) = landed.judge(landed.scopes, CENSUS)
    assert landed.rows == sum(each.count() for each in of_side.values())
    return outcome


def side_frames(
    spark: SparkSession, records: Sequence[AuditRecord], *other: Side
) -> dict[Side, DataFrame]:
    """The records by side; those of *other* have another timestamp type than expected."""
    return {
        side: record_frame(spark, [each for each in records if each.side is side]).withColumn(
            "other_time", F.lit(side in other)
        )
        for side in Side
    }


def test_copies_that_the_target_stamped_are_compared_without_timestamps(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = [src(n, n) for n in range(9)] + [dst(n, n, at=1_600 + n) for n in range(8)]
    outcome = judged(spark, tmp_path, scope(), side_frames(spark, records, Side.TARGET))
    assert outcome.counts == {Verdict.MATCHED: 8, Verdict.LOST: 1}
    assert not outcome.scope.identity.timestamp
    assert outcome.scope.target_time is TimestampType.MIXED


def test_times_of_former_settings_are_no_arrival_times(spark: SparkSession, tmp_path: Path) -> None:
    unit = scope(
        flow={"source_time": TimestampType.LOG_APPEND},
        target_time=TimestampType.LOG_APPEND,
        identity=Identity().without_timestamp(),
    )
    records = [src(n, n) for n in range(9)] + [dst(n, n) for n in range(9)]
    exact = judged(spark, tmp_path, unit, side_frames(spark, records))
    assert sum(part.without_bracket for part in exact.partitions) == 0
    outcome = judged(spark, tmp_path, unit, side_frames(spark, records, *Side))
    assert outcome.counts == {Verdict.MATCHED: 9}
    assert sum(part.without_bracket for part in outcome.partitions) == 9
    assert {flow.source_time for flow in outcome.scope.flows} == {TimestampType.MIXED}


@pytest.mark.parametrize("keep", [False, True])
def test_sample_rows_keeps_other_times_outside_the_sample(spark: SparkSession, keep: bool) -> None:
    rows = spark.range(2_000).selectExpr(
        "'t' as topic",
        "0 as partition",
        "id as offset",
        "timestamp_millis(id) as timestamp",
        "binary(string(id)) as key",
        "binary(string(id)) as value",
        "cast(id < 1000 as int) as timestampType",
    )
    identity, stamped = replace(Identity(), headers=False), F.col("timestampType") == 1
    kept = sample_rows(
        rows, identity, Sample(0.01), other_time=stamped, keep_other_times=keep
    ).collect()
    assert (sum(row.other_time for row in kept) == 1_000) is keep
    assert 0 < sum(not row.other_time for row in kept) < 100
