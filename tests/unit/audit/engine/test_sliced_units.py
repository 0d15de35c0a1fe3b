"""Units with slices in Spark: outcomes equal those of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from generated_units import Faults, Generated, generate
from sliced_units import read_slices, sliced

from mm2slo_audit.engine import judge
from mm2slo_audit.scope.kafka_scopes import Isolations, KafkaScopes
from mm2slo_audit.scope.sliced_scopes import bound_scopes
from mm2slo_core.audit.record_sample import Sample, SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.reference import judge as judge_plainly
from mm2slo_core.audit.source_slices import conclude_slices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mm2slo_core.audit.audit_scope import UnitScope

pytestmark = pytest.mark.xdist_group("spark")

FAULTS = Faults(
    lost=30, altered=10, moved=10, duplicate=30, out_of_order=30, identical=20, replays=(100,),
    unauditable=20, expired=10, tail=100, keys=100,
)  # fmt: skip
CENSUS = Sample(1.0)
SLICES = Sample(0.2, 5, SampleBy.SLICES, 15)


def bound(scopes: tuple[UnitScope, ...], units: list[Generated]) -> KafkaScopes:
    polls = (
        replace(each, topic=number) for number, unit in enumerate(units) for each in unit.polls
    )
    isolations = (Isolations((), "read_committed"),) * len(scopes)
    return bound_scopes(KafkaScopes(scopes, (), tuple(polls), isolations, ({},) * len(scopes)))


def test_two_units_with_slices_and_a_census_equal_the_reference(spark: SparkSession) -> None:
    units = [generate(seed, partitions=3, size=2_000, faults=FAULTS) for seed in (1, 2, 3)]
    scopes = tuple(
        replace(unit.scope if number == 2 else sliced(unit, SLICES, margin=20), index=number)
        for number, unit in enumerate(units)
    )
    landed = [
        replace(record, topic=scope.index)
        for scope, unit in zip(scopes, units, strict=True)
        for record in (read_slices(scope, unit.records) if scope.slices else unit.records)
    ]
    read = bound(scopes, units)
    found = judge(
        spark, record_frame(spark, landed), poll_frame(spark, read.polls), read.scopes, CENSUS
    )
    expected = [
        judge_plainly(landed, read.polls, scope, CENSUS, evidence_cap=100) for scope in read.scopes
    ]
    assert list(map(conclude_slices, scopes, found)) == list(map(conclude_slices, scopes, expected))
    first = conclude_slices(scopes[0], found[0])
    assert first.counts[Verdict.LOST] > 0
    assert sum(part.end_to_end.total_upper_ms for part in first.partitions) > 0
    assert (found[0].affinity.keys, found[2].affinity.keys) == (0, 300)


def test_units_with_slices_have_the_brackets_of_their_own_polls() -> None:
    unit = generate(1, partitions=3, size=2_000, faults=FAULTS)
    scope = sliced(unit, SLICES, margin=20)
    read = bound((scope,), [unit])
    drawn = list(read_slices(scope, unit.records))
    (few, every) = (
        judge_plainly(drawn, polls, read.scopes[0], CENSUS) for polls in (read.polls, unit.polls)
    )
    assert few == every
    assert len(set(read.polls)) == len(read.polls) < len(unit.polls)
