"""Execution plans of `match_tally` and `affinity`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from generated_units import generate

from mm2slo_audit.engine.match_tally import tally_matches
from mm2slo_audit.engine.record_pairs import count_by_key, tally_affinity
from mm2slo_audit.engine.unit_columns import Units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def adaptive(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield spark
    spark.conf.set("spark.sql.adaptive.enabled", "false")


def executed_plan(frame: DataFrame) -> str:
    """The final plan after execution."""
    frame.collect()
    text = str(frame._jdf.queryExecution().executedPlan().toString())
    assert "isFinalPlan=true" in text
    return text.split("== Initial Plan ==", maxsplit=1)[0]


def test_tally_matches_plan_has_one_exchange_and_no_python(adaptive: SparkSession) -> None:
    unit = generate(1, size=1_500, partitions=2)
    plan = executed_plan(
        tally_matches(
            record_frame(adaptive, unit.records),
            poll_frame(adaptive, unit.polls),
            Units((unit.scope,)),
            3,
        )
    )
    assert plan.count("Exchange ") == plan.count("Exchange hashpartitioning(place") == 1
    for python in ("BatchEvalPython", "ArrowEvalPython", "PythonUDF"):
        assert python not in plan


@pytest.mark.parametrize(
    ("ordered", "polled", "sorts"), [(1, 1, 2), (1, 0, 1), (0, 1, 2), (0, 0, 0)]
)
def test_tally_matches_plan_sorts_records_only_for_what_is_judged(
    adaptive: SparkSession, ordered: int, polled: int, sorts: int
) -> None:
    """The polls of each side need one, and so does the order on the source."""
    unit = generate(1, size=1_500, partitions=2)
    flows = tuple(replace(flow, has_positions=bool(ordered)) for flow in unit.scope.flows)
    plan = executed_plan(
        tally_matches(
            record_frame(adaptive, unit.records),
            poll_frame(adaptive, unit.polls) if polled else None,
            Units((replace(unit.scope, flows=flows),)),
            3,
        )
    )
    assert plan.count(" Sort [") == sorts


def test_tally_affinity_by_size_plan_adds_no_exchange_and_no_python(
    adaptive: SparkSession,
) -> None:
    unit = generate(1, size=1_500, partitions=2)
    units = Units((unit.scope,))
    found = count_by_key(adaptive, record_frame(adaptive, unit.records), None, units)
    plan, by_size = (
        executed_plan(tally_affinity(found, by_size=by_size)) for by_size in (False, True)
    )
    # Counts by key and partition, then by key: the records themselves are never exchanged.
    assert plan.count("Exchange hashpartitioning(topic") == 3
    assert by_size.count("Exchange hashpartitioning(topic") == 3
    for python in ("BatchEvalPython", "ArrowEvalPython", "PythonUDF"):
        assert python not in by_size
