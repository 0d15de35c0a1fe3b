"""Spark's outcomes equal those of the reference; many units are judged together."""

from __future__ import annotations

from dataclasses import fields
from itertools import cycle
from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from audit_spark.random_units import bucketed_unit, random_unit
from generated_units import Drawing
from injected_records import inject, random_plan

from mm2slo_audit.engine import judge
from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.reference import judge as judge_plainly
from mm2slo_core.audit.unit_outcome import KeyCell, UnitOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from mm2slo_core.audit.audit_record import ArrivalPoll, AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope

pytestmark = pytest.mark.xdist_group("spark")

CAP = 5


def differences(
    spark: SparkSession,
    scopes: Sequence[UnitScope],
    records: Sequence[AuditRecord],
    polls: Sequence[ArrivalPoll],
    sample: Sample,
) -> list[str]:
    """Differences between the outcomes of Spark and of the reference."""
    found = judge(
        spark,
        record_frame(spark, records),
        poll_frame(spark, polls),
        scopes,
        sample,
        evidence_cap=CAP,
        partitions=2,
    )
    assert [each.scope for each in found] == list(scopes)
    differ = []
    for scope, outcome in zip(scopes, found, strict=True):
        expected = judge_plainly(records, polls, scope, sample, evidence_cap=CAP)
        differ += [
            f"unit {scope.index}, {name}: expected {theirs}, found {ours}"
            for name in (each.name for each in fields(UnitOutcome))
            if (theirs := getattr(expected, name)) != (ours := getattr(outcome, name))
        ]
    return differ


def sizes(
    scopes: Sequence[UnitScope], records: Sequence[AuditRecord], sample: Sample
) -> list[KeyCell]:
    """Key cells of all units; in a sample one for each size."""
    return [
        cell
        for scope in scopes
        for cell in judge_plainly(records, (), scope, sample).affinity.cells
    ]


@pytest.mark.parametrize("rate", [1.0, pytest.param(0.4, marks=pytest.mark.long)])
def test_judge_units_of_all_kinds_equals_reference(spark: SparkSession, rate: float) -> None:
    """Fifty units with injected faults and ninety with many ties."""
    sample = Sample(rate)
    injected = [inject(random_plan(seed), index=seed, sample=sample) for seed in range(50)]
    tied = [
        random_unit(seed, seed, comparison)
        for seed, comparison in zip(range(50, 100), cycle(Comparison), strict=False)
    ]
    bucketed = [bucketed_unit(seed, seed) for seed in range(100, 140)]
    assert sum(unit.scope.bucketed for unit in bucketed) > 20
    tied += bucketed
    records = [each for unit in injected for each in unit.records]
    polls = [each for unit in injected for each in unit.polls]
    polls += [each for unit in tied for each in unit.polls]
    records += Drawing(each for unit in tied for each in unit.records).draw(sample)
    scopes = [*(unit.scope for unit in injected), *(unit.scope for unit in tied)]
    assert not differences(spark, scopes, records, polls, sample)
    cells = sizes(scopes, records, sample)
    assert sum(0 < cell.moved < cell.copies for cell in cells) >= 20
    assert sum(cell.overtook > 0 for cell in cells) >= 5
    assert sum(cell.records != cell.copies for cell in cells) >= 50
    assert len(cells) > len(scopes) or sample.census
