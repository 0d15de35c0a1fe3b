"""The self-test of `mm2slo audit prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.spark import spark_self_test
from mm2slo_audit.spark.connector_rows import sample_rows
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark")]


def test_self_test_finds_lost_and_duplicate_record(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[Sequence[UnitOutcome]] = []

    def kept(*arguments: object) -> Sequence[UnitOutcome]:
        outcomes.append(judge(*arguments))  # type: ignore[arg-type]  # passed on as they came
        return outcomes[-1]

    monkeypatch.setattr(spark_self_test, "judge", kept)
    spark_self_test.run_self_test(spark, tmp_path.as_uri())
    ((outcome,),) = outcomes
    found = {(each.verdict, each.partition, each.offset) for each in outcome.evidence}
    assert found == {(Verdict.LOST, 0, 200), (Verdict.DUPLICATE, 1, 500)}


def test_self_test_with_other_findings_raises_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Drop offset 200, the lost record.
    monkeypatch.setattr(
        spark_self_test,
        "sample_rows",
        lambda *arguments, **options: sample_rows(*arguments, **options).where("offset <> 200"),
    )
    with pytest.raises(
        UserError, match="997 matched, 1 duplicate; expected 999 matched, 1 lost, 1 dupl"
    ):
        spark_self_test.run_self_test(spark, tmp_path.as_uri())
