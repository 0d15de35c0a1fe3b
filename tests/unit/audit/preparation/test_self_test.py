"""The audit of made-up records that `mm2slo audit prepare` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mm2slo_audit.engine import judge
from mm2slo_audit.ingestion.connector_rows import sampled
from mm2slo_audit.preparation import self_test
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from mm2slo_core.audit.unit_outcome import UnitOutcome


def test_the_planted_faults_are_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[Sequence[UnitOutcome]] = []

    def kept(*arguments: object) -> Sequence[UnitOutcome]:
        outcomes.append(judge(*arguments))  # type: ignore[arg-type]  # passed on as they came
        return outcomes[-1]

    monkeypatch.setattr(self_test, "judge", kept)
    self_test.run_self_test(spark, tmp_path.as_uri())
    ((outcome,),) = outcomes
    found = {(each.verdict, each.partition, each.offset) for each in outcome.evidence}
    assert found == {(Verdict.LOST, 0, 200), (Verdict.DUPLICATE, 1, 500)}


def test_other_findings_are_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A census that looks at nothing but whether there is a value.
    monkeypatch.setattr(
        self_test,
        "sampled",
        lambda *arguments, **options: sampled(*arguments, **options).where("offset <> 200"),
    )
    with pytest.raises(
        UserError, match="997 matched, 1 duplicate where 999 matched, 1 lost, 1 dupl"
    ):
        self_test.run_self_test(spark, tmp_path.as_uri())
