"""Layers of sampled units in Spark: outcomes equal those of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from generated_units import Faults, generate
from sliced_units import read_layer, sliced

from mm2slo_audit.engine import judge
from mm2slo_audit.scope.kafka_scopes import Isolations, KafkaScopes
from mm2slo_audit.scope.slice_layers import expand_layers
from mm2slo_core.audit.record_sample import Sample, SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.reference import judge as judge_plainly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

FAULTS = Faults(
    lost=30, altered=10, moved=10, duplicate=30, out_of_order=30, identical=20, replays=(100,),
    unauditable=20, expired=10, tail=100, keys=100,
)  # fmt: skip
CENSUS = Sample(1.0)


def test_layers_of_two_units_and_a_census_equal_the_reference(spark: SparkSession) -> None:
    units = [generate(seed, partitions=3, size=2_000, faults=FAULTS) for seed in (1, 2, 3)]
    sample = Sample(0.2, 5, SampleBy.SLICES, 15)
    scopes = tuple(
        replace(unit.scope if number == 2 else sliced(unit, sample, margin=20), index=number)
        for number, unit in enumerate(units)
    )
    records = [
        replace(each, topic=number) for number, unit in enumerate(units) for each in unit.records
    ]
    polls = [
        replace(each, topic=number) for number, unit in enumerate(units) for each in unit.polls
    ]
    expanded, layers = expand_layers(
        KafkaScopes(scopes, (), tuple(polls), (Isolations((), "read_committed"),) * 3, ({},) * 3)
    )
    assert layers.units.count(0) > 9
    assert layers.units.count(2) == 1
    landed = [
        replace(record, topic=layer.index)
        for layer, unit in zip(expanded.scopes, layers.units, strict=True)
        for record in read_layer(layer, (each for each in records if each.topic == unit))
    ]
    found = judge(
        spark,
        record_frame(spark, landed),
        poll_frame(spark, expanded.polls),
        expanded.scopes,
        CENSUS,
    )
    expected = [
        judge_plainly(landed, expanded.polls, layer, CENSUS, evidence_cap=100)
        for layer in expanded.scopes
    ]
    assert [layers.merge(scope, found) for scope in scopes] == [
        layers.merge(scope, expected) for scope in scopes
    ]
    merged = layers.merge(scopes[0], found)
    assert merged.counts[Verdict.LOST] > 0
    assert sum(part.end_to_end.total_upper_ms for part in merged.partitions) > 0


def test_layers_have_the_brackets_of_their_own_polls() -> None:
    unit = generate(1, partitions=3, size=2_000, faults=FAULTS)
    scope = sliced(unit, Sample(0.2, 5, SampleBy.SLICES, 15), margin=20)
    expanded, _layers = expand_layers(
        KafkaScopes((scope,), (), unit.polls, (Isolations((), "read_committed"),), ({},))
    )
    layer = expanded.scopes[1]
    drawn = [replace(each, topic=1) for each in read_layer(layer, unit.records)]
    (few, every) = (
        judge_plainly(drawn, polls, layer, CENSUS)
        for polls in (expanded.polls, [replace(each, topic=1) for each in unit.polls])
    )
    assert few == every
    assert len(expanded.polls) < 5 * len(unit.polls)
