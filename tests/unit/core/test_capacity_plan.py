"""Sizes of a flow: figures worked by hand, their monotonicity, and inputs that are refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.mm2_config.capacity_plan import CapacityPlan, Workload, plan_capacity
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

FLOW = Flow("us", "eu")
MIB = 1024 * 1024
BASE: dict[str, Any] = {
    "records_per_second": 20_000,
    "record_size": 1000,
    "partitions": 60,
    "round_trip": 80,
    "outage": 60,
}
# 30 tasks of one partition; 0.5 MB/s of it after compression; 85 ms to an acknowledgement.
FAR_TARGET = {"partitions": 30, "compression": 4, "workers_at_source": True}
# 10 tasks of two partitions at 25 MB/s, over 150 ms.
LARGE = {
    "records_per_second": 200_000,
    "partitions": 20,
    "round_trip": 150,
    "outage": 30,
    "task_bytes_per_second": 50e6,
}
# Two tasks for 0.05 MB/s, so that either of two workers has work.
SMALL = {"records_per_second": 100, "record_size": 500, "partitions": 3, "round_trip": 10}
# A batch of 1 MiB per 200 ms: 5.24288 MB/s per partition, whatever the task could do.
SLOW_BATCHES = {
    "records_per_second": 15_000,
    "partitions": 4,
    "round_trip": 195,
    "workers_at_source": True,
    "task_bytes_per_second": 50e6,
}
DEFAULT_SIZES = {
    "offset.lag.max": 100,
    "max.partition.fetch.bytes": MIB,
    "fetch.max.bytes": 50 * MIB,
    "receive.buffer.bytes": 65_536,
    "batch.size": 16_384,
    "linger.ms": 5,
    "max.request.size": MIB,
    "buffer.memory": 32 * MIB,
    "send.buffer.bytes": 131_072,
}


def plan(**changes: Any) -> CapacityPlan:
    return plan_capacity(Workload(**{**BASE, **changes}), FLOW)


def values(planned: CapacityPlan) -> dict[str, float]:
    return {each.name: each.value for each in planned.figures}


@pytest.mark.parametrize(
    ("changes", "scale", "outage", "retention", "sizes"),
    [
        pytest.param(
            {},
            (20, 6, 40, 2 / 3, 2, 176, 352),
            (72_000_000, 60, 61, 121, 1_200_000),
            2_420_000_000,
            {"fetch.min.bytes": 26_666, "receive.buffer.bytes": 196_608},
            id="base",
        ),
        pytest.param(
            FAR_TARGET,
            (30, 9, 60, 0.5, 0.5, 44, 132),
            (72_000_000, 30, 61, 91, 1_200_000),
            910_000_000,
            {"fetch.min.bytes": 166, "batch.size": 86_016},
            id="far-target",
        ),
        pytest.param(
            LARGE,
            (10, 4, 500, 25, 50, 1760, 4400),
            (360_000_000, 20, 31, 51, 12_000_000),
            30_600_000_000,
            {
                "offset.lag.max": 300,
                "fetch.min.bytes": 1_500_000,
                "max.partition.fetch.bytes": 115 * 65_536,
                "receive.buffer.bytes": 115 * 65_536,
                "batch.size": 74 * 4096,
                "send.buffer.bytes": 5 * 65_536,
            },
            id="large",
        ),
        pytest.param(
            SMALL,
            (2, 2, 3, 1, 2, 0.44, 26.4),
            (360_000, 60 / 59, 61, 61 + 60 / 59, 6000),
            62_016_950,
            {"fetch.min.bytes": 166},
            id="small",
        ),
        pytest.param(
            SLOW_BATCHES,
            (2, 2, 20.97152, 5.24288, 10.48576, 132, 184.549376),
            (54_000_000, 900 / 5.97152, 61, 61 + 900 / 5.97152, 900_000),
            47_635_964_043,
            {
                "fetch.min.bytes": 3750,
                "batch.size": MIB,
                "max.request.size": 4 * MIB,
                "send.buffer.bytes": 2 * MIB,
            },
            id="slow-batches",
        ),
    ],
)
def test_plan_capacity_stated_rates_give_figures_worked_by_hand(
    changes: dict[str, Any],
    scale: tuple[float, ...],
    outage: tuple[float, ...],
    retention: int,
    sizes: dict[str, int],
) -> None:
    found = values(plan(**changes))
    names = ("tasks.max", "workers", "capacity", "partition rate", "task rate")
    network = ("network, steady", "network, catching up")
    assert [found[name] for name in names + network] == pytest.approx(scale)
    times = ("catch-up time", "lowest retention", "safe retention")
    names = ("backlog after outage", *times, "replay after crash")
    assert [found[name] for name in names] == pytest.approx(outage)
    assert found["retention.bytes"] == retention
    expected = {**DEFAULT_SIZES, **sizes}
    assert {name: found[name] for name in expected} == expected


def test_plan_capacity_properties_leave_out_kafka_defaults() -> None:
    assert plan(**LARGE).properties == {
        "us->eu.tasks.max": "10",
        "us->eu.offset.lag.max": "300",
        "us.consumer.fetch.min.bytes": "1500000",
        "us.consumer.max.partition.fetch.bytes": "7536640",
        "us.consumer.receive.buffer.bytes": "7536640",
        "us->eu.producer.override.batch.size": "303104",
        "us->eu.producer.override.linger.ms": "5",
        "us->eu.producer.override.send.buffer.bytes": "327680",
        "dedicated.mode.enable.internal.rest": "true",
    }


def test_plan_capacity_every_figure_has_formula_and_source() -> None:
    assert [each for each in plan().figures if not (each.formula and each.source)] == []


def test_workload_bytes_per_second_equal_records_of_that_size() -> None:
    assert plan(record_size=None, bytes_per_second=20e6) == plan()


def test_plan_capacity_records_above_half_a_mebibyte_raise_request_size() -> None:
    found = values(plan(records_per_second=20, record_size=1e6))
    assert found["max.request.size"] == 31 * 65_536


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({}, "if a task can do 10 MB/s, 4 tasks on 2 workers suffice: measure one"),
        ({"partitions": 15}, "headroom is 50, not 100 percent: partitions are the limit"),
        (SLOW_BATCHES, "headroom is 40, not 100 percent: partitions are the limit"),
        (
            {"retention": 2},
            "--retention 2 survives one outage, not another while catching up",
        ),
        (
            {"compression": 2},
            "also set us->eu.producer.override.compression.type (default: none)",
        ),
    ],
)
def test_plan_capacity_limitation_is_noted(changes: dict[str, Any], note: str) -> None:
    assert note in plan(**changes).notes


def test_plan_capacity_measured_task_and_long_retention_need_no_note_about_them() -> None:
    notes = plan(task_bytes_per_second=10e6, retention=3).notes
    assert len(notes) == 2
    assert all(note.startswith(("brokers'", "assumes")) for note in notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"records_per_second": 0}, "--records-per-second is 0; expected 0.001 to 1e+09: "),
        ({"record_size": -1}, "--record-size is -1; expected 1 to 1e+08: "),
        ({"partitions": 0}, "--partitions is 0; expected 1 to 1e+06: "),
        ({"round_trip": -80}, "--round-trip is -80; expected 0.1 to 2000: "),
        ({"outage": float("nan")}, "--outage is nan; expected 1 to 525600: "),
        ({"outage": float("inf")}, "--outage is inf; expected 1 to 525600: "),
        ({"retention": 0}, "--retention is 0; expected 0.1 to 100000: "),
        ({"compression": 0.5}, "--compression is 0.5; expected 1 to 100: "),
        ({"tasks_per_worker": 0}, "--tasks-per-worker is 0; expected 1 to 1000: "),
        ({"record_size": None}, "expected --record-size or --bytes-per-second: "),
        ({"bytes_per_second": 20e6}, "expected --record-size or --bytes-per-second: "),
        (
            {"retention": 1},
            "--outage 60 is too long for --retention 1; expected at most 59 minutes "
            "(retention - flush interval): raise retention.ms of the source topics to 3660000 ",
        ),
        (
            {"partitions": 10},
            "capacity is at most 20 MB/s, 2 MB/s per partition (one task, one batch of 1 MiB per "
            "round trip); expected more than the rate, 20 MB/s: add --partitions, ",
        ),
        (
            {**SLOW_BATCHES, "partitions": 2},
            "capacity is at most 10.5 MB/s, 5.24 MB/s per partition ",
        ),
    ],
)
def test_plan_capacity_impossible_input_is_refused_in_one_line(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as refused:
        plan(**changes)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """A workload that the flow can keep up with."""
    partitions = draw(st.integers(1, 1_000_000))
    round_trip = draw(st.floats(0.1, 2000))
    compression = draw(st.floats(1, 100))
    at_source = draw(st.booleans())
    task = draw(st.floats(1000, 5e8))
    batch = MIB * compression / ((round_trip if at_source else 1) / 1000 + 0.005)
    share = draw(st.floats(0.01, 0.99))
    return Workload(
        records_per_second=draw(st.floats(1e-3, 1e9)),
        bytes_per_second=min(1e12, share * partitions * min(task, batch)),
        partitions=partitions,
        round_trip=round_trip,
        outage=draw(st.floats(1, 525_600)),
        compression=compression,
        headroom=draw(st.floats(1, 10_000)),
        workers_at_source=at_source,
        task_bytes_per_second=task,
        tasks_per_worker=draw(st.integers(1, 1000)),
    )


@given(workloads())
def test_plan_capacity_any_workload_keeps_invariants(work: Workload) -> None:
    found = values(plan_capacity(work, FLOW))
    rate = work.rate / 1e6
    assert min(2, work.partitions) <= found["tasks.max"] <= work.partitions
    assert found["capacity"] > rate
    busiest = found["task rate"] * work.compression
    assert busiest <= work.task_bytes_per_second / 1e6 * (1 + 1e-9)
    if found["tasks.max"] < work.partitions and found["batch.size"] < MIB:
        assert found["capacity"] >= rate * (1 + work.headroom / 100) * (1 - 1e-6)
    assert found["safe retention"] >= found["lowest retention"] > work.outage
    settings = {name: found[name] for name in (*DEFAULT_SIZES, "fetch.min.bytes")}
    assert all(isinstance(value, int) and value >= 1 for value in settings.values())
    # These are 32-bit integers in Kafka.
    del settings["buffer.memory"], settings["offset.lag.max"]
    assert max(settings.values()) < 2**31


@pytest.mark.parametrize(
    ("field", "rising"),
    [
        ("bytes_per_second", ("tasks.max", "workers", "capacity", "network, steady")),
        ("headroom", ("tasks.max", "workers", "capacity")),
        (
            "outage",
            ("backlog after outage", "catch-up time", "lowest retention", "safe retention"),
        ),
        (
            "round_trip",
            (
                "offset.lag.max",
                "fetch.min.bytes",
                "max.partition.fetch.bytes",
                "fetch.max.bytes",
                "receive.buffer.bytes",
            ),
        ),
    ],
)
@given(work=workloads(), divisor=st.floats(1, 100))
def test_plan_capacity_smaller_input_never_raises_its_figures(
    work: Workload, divisor: float, field: str, rising: tuple[str, ...]
) -> None:
    work = replace(work, workers_at_source=False)
    lowest = 0.1 if field == "round_trip" else 1
    smaller = replace(work, **{field: max(lowest, getattr(work, field) / divisor)})
    before, after = (values(plan_capacity(each, FLOW)) for each in (work, smaller))
    assert [name for name in rising if after[name] > before[name] * (1 + 1e-9)] == []


@given(work=workloads(), factor=st.floats(1, 100))
def test_plan_capacity_faster_tasks_never_need_more_tasks(work: Workload, factor: float) -> None:
    faster = replace(work, task_bytes_per_second=min(work.task_bytes_per_second * factor, 5e8))
    before, after = (values(plan_capacity(each, FLOW)) for each in (work, faster))
    assert after["tasks.max"] <= before["tasks.max"]
