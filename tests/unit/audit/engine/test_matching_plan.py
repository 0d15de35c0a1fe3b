"""What the plan of `matching` must be, whatever it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from generated import generate

from mm2slo_audit.engine.matching import tally
from mm2slo_audit.engine.units import Units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def adaptive(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield spark
    spark.conf.set("spark.sql.adaptive.enabled", "false")


def executed_plan(frame: DataFrame) -> str:
    """The plan as it was in the end, of one that ran."""
    frame.collect()
    text = str(frame._jdf.queryExecution().executedPlan().toString())
    assert "isFinalPlan=true" in text
    return text.split("== Initial Plan ==", maxsplit=1)[0]


def test_the_records_are_exchanged_once_and_pass_no_python(adaptive: SparkSession) -> None:
    unit = generate(1, size=1_500, partitions=2)
    plan = executed_plan(
        tally(
            record_frame(adaptive, unit.records),
            poll_frame(adaptive, unit.polls),
            Units((unit.scope,)),
            3,
        )
    )
    assert plan.count("Exchange ") == plan.count("Exchange hashpartitioning(place") == 1
    for python in ("BatchEvalPython", "ArrowEvalPython", "PythonUDF"):
        assert python not in plan
