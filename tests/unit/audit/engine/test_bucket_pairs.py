"""Equal records that cuts distinguish, in Spark: a loss that counts hide, and the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from small_audit_unit import CENSUS, dst, scope, src

from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.engine.record_pairs import pair_records
from mm2slo_audit.engine.unit_columns import Units
from mm2slo_core.audit.audit_scope import Cut, TimestampType, UnitScope
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CUTS = (Cut(20, 120), Cut(40, 140), Cut(60, 160))
# The record at 5 is lost; another writer wrote an equal one at 175.
RECORDS = (src(5, 7), src(70, 7), dst(170, 7, at=1_600), dst(175, 7, at=1_601))


def stamped(*cuts: Cut) -> UnitScope:
    return scope(
        source={"cuts": cuts},
        identity=Identity().without_timestamp(),
        target_time=TimestampType.LOG_APPEND,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("unit", "counts"),
    [
        (stamped(), {Verdict.MATCHED: 2}),
        (stamped(*CUTS), {Verdict.MATCHED: 1, Verdict.LOST: 1, Verdict.DUPLICATE: 1}),
    ],
)
def test_judge_equal_foreign_record_beyond_cut_does_not_hide_loss(
    spark: SparkSession, unit: UnitScope, counts: dict[Verdict, int]
) -> None:
    records, polls = record_frame(spark, RECORDS), poll_frame(spark, ())
    (outcome,) = judge(spark, records, polls, [unit], CENSUS, partitions=1)
    assert outcome.counts == counts


def test_pair_records_plan_has_one_exchange_and_no_python(spark: SparkSession) -> None:
    none = "cast(null as bigint) as"
    records = record_frame(spark, RECORDS).selectExpr("*", f"{none} earliest", f"{none} latest")
    found = pair_records(records, Units((stamped(*CUTS),)))
    plan = str(found._jdf.queryExecution().executedPlan().toString())
    exchanges = [line for line in plan.splitlines() if "Exchange " in line]
    assert [line for line in exchanges if "BroadcastExchange" not in line] == [
        line for line in exchanges if "hashpartitioning(topic" in line
    ]
    assert plan.count("Exchange hashpartitioning(topic") == 1
    for python in ("BatchEvalPython", "ArrowEvalPython", "PythonUDF"):
        assert python not in plan
