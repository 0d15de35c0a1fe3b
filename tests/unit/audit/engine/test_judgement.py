"""Spark's outcomes equal those of the reference; many units are judged together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import cycle
from typing import TYPE_CHECKING

import pytest
from audit_spark import bucketed_unit, poll_frame, random_unit, record_frame
from generated_units import Drawing
from injected_records import inject, random_plan
from reference_audit import judge as judge_plainly

from mm2slo_audit.engine.judgement import judge
from mm2slo_core.audit.audit_scope import ArrivalPoll, AuditRecord, Comparison, UnitScope
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import KeyCell, UnitOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        poll_frame(spark, polls) if polls else None,
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


@pytest.mark.parametrize(
    ("units", "rate"),
    [
        (6, 1.0),
        pytest.param(50, 1.0, marks=pytest.mark.long),
        pytest.param(50, 0.4, marks=pytest.mark.long),
    ],
)
def test_judge_units_of_all_kinds_equals_reference(
    spark: SparkSession, units: int, rate: float
) -> None:
    """Units with injected faults, as many with many ties, and as many in time buckets."""
    sample = Sample(rate)
    injected = [inject(random_plan(seed), index=seed, sample=sample) for seed in range(units)]
    tied = [
        random_unit(seed, seed, comparison)
        for seed, comparison in zip(range(units, 2 * units), cycle(Comparison), strict=False)
    ]
    bucketed = [bucketed_unit(seed, seed) for seed in range(2 * units, 3 * units)]
    assert sum(unit.scope.bucketed for unit in bucketed) > units / 2
    tied += bucketed
    records = [each for unit in injected for each in unit.records]
    polls = [each for unit in injected for each in unit.polls]
    polls += [each for unit in tied for each in unit.polls]
    records += Drawing(each for unit in tied for each in unit.records).draw(sample)
    scopes = [*(unit.scope for unit in injected), *(unit.scope for unit in tied)]
    assert not differences(spark, scopes, records, polls, sample)
    cells = sizes(scopes, records, sample)
    assert sum(0 < cell.moved < cell.copies for cell in cells) >= 0.4 * units
    assert sum(cell.overtook > 0 for cell in cells) >= 0.1 * units
    assert sum(cell.records != cell.copies for cell in cells) >= units
    assert len(cells) > len(scopes) or sample.census


def without_positions(scope: UnitScope) -> UnitScope:
    """*scope* as of another engine than MirrorMaker 2: order is not judged."""
    flows = tuple(replace(flow, has_positions=False) for flow in scope.flows)
    return replace(scope, flows=flows)


@pytest.mark.parametrize("polled", [True, False])
def test_judge_without_order_or_polls_equals_reference(spark: SparkSession, polled: bool) -> None:
    injected = [inject(random_plan(seed), index=seed) for seed in range(4)]
    scopes = [without_positions(unit.scope) for unit in injected]
    records = [each for unit in injected for each in unit.records]
    polls = [each for unit in injected if polled for each in unit.polls]
    assert not differences(spark, scopes, records, polls, Sample(1.0))


@pytest.mark.parametrize(
    "others",
    [(), pytest.param((Comparison.KEYS, Comparison.LATEST), marks=pytest.mark.long)],
    ids=["records", "all"],
)
def test_judge_order_without_polls_equals_reference(
    spark: SparkSession, others: Sequence[Comparison]
) -> None:
    kinds = (*[Comparison.RECORDS] * 3, *others)
    units = [random_unit(seed, seed, kind) for seed, kind in enumerate(kinds)]
    records = [each for unit in units for each in unit.records]
    assert not differences(spark, [unit.scope for unit in units], records, (), Sample(1.0))
