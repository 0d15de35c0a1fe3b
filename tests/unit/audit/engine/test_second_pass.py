"""The second pass reads few records and finds all anomalies."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_spark import poll_frame, record_frame
from generated_units import generate
from reference_audit import judge as judge_plainly

from mm2slo_audit.engine import second_pass
from mm2slo_audit.engine.judgement import judge
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CENSUS = Sample(1.0)
START = 1_000_000
COPIED = 1_000
"""Records per partition that a stopped flow had copied."""


@pytest.fixture
def records_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of records that second passes read."""
    numbers: list[int] = []
    select = second_pass.select_in_slices

    def counted(*arguments: object) -> DataFrame:
        found = select(*arguments)  # type: ignore[arg-type]  # passed through
        numbers.append(found.count())
        return found

    monkeypatch.setattr(second_pass, "select_in_slices", counted)
    return numbers


def stopped(spark: SparkSession, sources: int, partitions: int) -> tuple[UnitScope, DataFrame]:
    """A flow that stopped after `COPIED` records per partition; one of them is lost."""
    each = sources // partitions
    scope = UnitScope(
        index=0,
        target_topic="us.orders",
        flows=(
            FlowScope(
                Flow("us", "eu"),
                "orders",
                tuple(SourcePartition(p, 0, 0, each, COPIED) for p in range(partitions)),
            ),
        ),
        partitions=tuple(TargetPartition(p, 0, 0, COPIED - 1) for p in range(partitions)),
        window=Window(START, START + each),
        identity=Identity(),
        taken_at=START + each,
        max_pending=each // 4,
    )
    source = spark.range(each * partitions).selectExpr(
        "0 as topic",
        "0 as flow",
        "cast(0 as tinyint) as side",
        f"cast(id % {partitions} as int) as partition",
        f"id div {partitions} as offset",
        f"{START} + id div {partitions} as ts",
        "xxhash64(id) as fp",
        "xxhash64(id % 1000) as kh",
        "100 as size",
        "true as in_records",
        "true as in_keys",
        "false as tombstone",
    )
    copies = source.where(f"offset < {COPIED} and offset <> 500").selectExpr(
        "* except (side, offset)",
        "cast(1 as tinyint) as side",
        "offset - cast(offset > 500 as int) as offset",
    )
    return scope, source.unionByName(copies)


def assert_stopped(outcome: UnitOutcome, sources: int, partitions: int) -> None:
    """All records are counted."""
    each = sources // partitions
    pending = each // 4
    assert outcome.counts == {
        Verdict.MATCHED: partitions * (COPIED - 1),
        Verdict.LOST: partitions,
        Verdict.PENDING: partitions * pending,
        Verdict.OVERDUE: partitions * (each - pending - COPIED),
    }
    assert outcome.oldest_open == START + COPIED
    shown = [(item.verdict, item.partition, item.offset) for item in outcome.evidence]
    assert shown == [
        *((Verdict.OVERDUE, 0, COPIED + number) for number in range(100)),
        *((Verdict.LOST, number, 500) for number in range(partitions)),
    ]


def test_judge_backlog_of_stopped_flow_needs_no_second_pass(
    spark: SparkSession, records_read: list[int]
) -> None:
    scope, records = stopped(spark, 300_000, 4)
    (outcome,) = judge(spark, records, poll_frame(spark, ()), [scope], CENSUS)
    assert_stopped(outcome, 300_000, 4)
    assert sum(records_read) < 10_000


@pytest.mark.long
def test_judge_backlog_of_ten_million_records_needs_no_second_pass(
    spark: SparkSession, records_read: list[int]
) -> None:
    scope, records = stopped(spark, 10_000_000, 4)
    (outcome,) = judge(spark, records, poll_frame(spark, ()), [scope], CENSUS)
    assert_stopped(outcome, 10_000_000, 4)
    assert sum(records_read) < 60_000


def disordered(seed: int, index: int) -> tuple[UnitScope, list[AuditRecord], list[ArrivalPoll]]:
    """One partition with timestamps and copies out of order, repeats, losses and moves."""
    draw = random.Random(seed)
    count = 120
    contents = [draw.randrange(1 << 40) for _ in range(count)]
    times = [max(0, number * 5 + draw.choice((0, 0, 0, -40, 9, 300))) for number in range(count)]
    for _ in range(draw.choice((0, 0, 3))):
        at = draw.randrange(count - 4)
        again = at + draw.choice((1, 3))
        contents[again], times[again] = contents[at], times[at]
    order = [
        number + draw.choice((0,) * 30 + (2.5, -3.5, 60.5, -70.5)) * (seed % 4 > 0)
        for number in range(count)
    ]

    def record(side: Side, partition: int, offset: int, number: int) -> AuditRecord:
        return AuditRecord(
            topic=index,
            flow=0,
            side=side,
            partition=partition,
            offset=offset,
            timestamp=times[number],
            fingerprint=contents[number],
            key_hash=contents[number] % 7 or None,
            size=contents[number] % 100,
        )

    copied = [(order[number], number) for number in range(count) if draw.random() > 0.04]
    copied += [(order[number] + 20, number) for number in range(count) if draw.random() < 0.05]
    block = draw.randrange(count - 20)
    copied += [(block + 12 + each / 10, block + each) for each in range(draw.choice((0, 6)))]
    records = [record(Side.SOURCE, 0, number, number) for number in range(count)]
    copies = [number for _, number in sorted(copied)]
    step = draw.choice((1, 1, 30))  # offsets skipped by transactions
    records += [
        record(Side.TARGET, int(draw.random() < 0.02), offset * step, number)
        for offset, number in enumerate(copies)
    ]
    polls = [
        ArrivalPoll(index, 0, side, 0, end, end * 5, end * 5 + 90)
        for side in Side
        for end in range(10, count * step, 10 * step)
    ]
    partitions = tuple(
        SourcePartition(each, 0, 0, count, draw.choice((None, 100)), draw.choice((0, 5)))
        for each in range(2)
    )
    return (
        UnitScope(
            index=index,
            target_topic=f"t{index}",
            flows=(FlowScope(Flow("us", "eu"), "t", partitions),),
            partitions=tuple(TargetPartition(each, 0, 0, count) for each in range(2)),
            window=Window(30, 560),
            identity=Identity(),
            taken_at=700,
            max_pending=300,
        ),
        records,
        polls,
    )


@pytest.mark.parametrize(
    ("count", "pieces"),
    [
        (6, 7),
        pytest.param(40, 7, marks=pytest.mark.long),
        pytest.param(40, 1, marks=pytest.mark.long),
    ],
)
def test_judge_disorder_in_parts_equals_reference(
    spark: SparkSession, count: int, pieces: int
) -> None:
    """Verdicts of one partition, as a whole and in parts, equal the reference."""
    units = [disordered(seed, seed) for seed in range(count)]
    records = [each for _, of_unit, _ in units for each in of_unit]
    polls = [each for _, _, of_unit in units for each in of_unit]
    scopes = [scope for scope, _, _ in units]
    found = judge(
        spark,
        record_frame(spark, records),
        poll_frame(spark, polls),
        scopes,
        CENSUS,
        evidence_cap=3,
        partitions=3,
        split={(scope.index, 0): pieces for scope in scopes if pieces > 1},
    )
    expected = [judge_plainly(records, polls, scope, CENSUS, evidence_cap=3) for scope in scopes]
    assert found == expected
    totals = [each.counts for each in expected]
    for verdict in (Verdict.OUT_OF_ORDER, Verdict.MOVED, Verdict.DUPLICATE, Verdict.REPLAY):
        assert sum(each.get(verdict, 0) for each in totals) > count / 2, verdict


def test_judge_clean_unit_needs_no_second_pass(
    spark: SparkSession, records_read: list[int]
) -> None:
    unit = generate(3, size=1_500, partitions=2)
    # Equal records would need a second pass, so keep one of each.
    sources = {
        (each.partition, each.timestamp, each.fingerprint): each
        for each in unit.records
        if each.side is Side.SOURCE
    }.values()
    copies = [replace(each, side=Side.TARGET, flow=0) for each in sources]
    judge(
        spark,
        record_frame(spark, [*sources, *copies]),
        poll_frame(spark, unit.polls),
        [unit.scope],
        CENSUS,
    )
    assert not records_read
