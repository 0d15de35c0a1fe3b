"""The rate of a task at another round trip."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perf_samples import report_of, run_of

from mm2slo_core.perf.perf_model import CPU, ROUND_TRIP, predict_task_rate
from mm2slo_core.perf.perf_report import PerfCellResult, PerfReport
from mm2slo_core.perf.perf_schedule import PerfCell, PerfLoad, PerfMode
from mm2slo_core.user_errors import UserError

MIB = 1 << 20


def measured(*points: tuple[float, float, str], tasks: int = 1, partitions: int = 1) -> PerfReport:
    """A report with cells of (round trip in ms, records of 1,000 bytes per second, limit)."""
    report = report_of(PerfMode.SUSTAINED)
    for trip, rate, limit in points:
        run = run_of(0.1, rate=rate)
        run.limit = limit
        load = PerfLoad(mode=PerfMode.SUSTAINED, partitions=partitions)
        cell = PerfCell(f"{trip}", load, trip, tasks)
        report.cells.append(PerfCellResult(cell=cell, runs=[run]))
    return report


def test_measured_distance_is_predicted_as_measured() -> None:
    report = measured((0, 37_000, CPU), (80, 11_000, ROUND_TRIP))
    for trip, rate in ((0, 37e6), (80, 11e6)):
        assert predict_task_rate(report, trip, "a.json").rate == pytest.approx(rate)


@given(st.floats(1e6, 1e8), st.floats(50, 2000))
def test_one_fetch_per_round_trip_is_found_again(speed: float, trip: float) -> None:
    def rate(at: float) -> float:
        return 1 / (1 / speed + at / 1000 / MIB)

    report = measured((50, rate(50) / 1000, ROUND_TRIP))
    assert predict_task_rate(report, trip, "a.json").rate == pytest.approx(rate(trip), rel=1e-6)


def test_rate_that_nothing_has_shown_is_none_to_plan_with() -> None:
    found = predict_task_rate(measured((80, 11_000, ROUND_TRIP)), 1, "a.json")
    assert found.rate == pytest.approx(11e6)
    assert "at least, since what limits it nearby was not measured" in found.how


def test_lower_bounds_are_no_ceilings() -> None:
    report = measured((0, 5_000, "--rate"), (0, 30_000, CPU))
    assert predict_task_rate(report, 0, "a.json").rate == 30e6
    assert "at least" in predict_task_rate(measured((0, 5_000, "--rate")), 0, "a.json").how


def test_compressed_fetches_bring_more() -> None:
    report = measured((0, 50_000, CPU), (80, 11_000, ROUND_TRIP))
    assert predict_task_rate(report, 80, "a.json", 4).rate > 25e6


def test_unknown_tasks_or_distance_are_refused() -> None:
    report = measured((80, 11_000, ROUND_TRIP))
    changes: list[dict[str, Any]] = [{"tasks": None}, {"round_trip_ms": None}]
    for change in changes:
        unknown = replace(report.cells[0].cell, **change)
        report.cells[0].cell = unknown
        with pytest.raises(UserError, match="state them with --tasks and --round-trip"):
            predict_task_rate(report, 80, "a.json")


def test_busiest_task_has_the_larger_share() -> None:
    report = measured((80, 30_000, ROUND_TRIP), tasks=2, partitions=3)
    assert predict_task_rate(report, 80, "a.json").rate == pytest.approx(20e6)


def test_cpu_is_a_ceiling_at_each_distance() -> None:
    report = measured((0, 30_000, CPU), (80, 11_000, ROUND_TRIP))
    assert predict_task_rate(report, 1, "a.json").rate == 30e6


def test_rate_is_that_of_one_task_with_its_partitions() -> None:
    report = measured((80, 40_000, ROUND_TRIP), tasks=4, partitions=8)
    found = predict_task_rate(report, 80, "a.json")
    assert found.rate == pytest.approx(10e6)
    assert "with 1.05 MB per round trip" in found.how


def test_partitions_of_a_task_take_turns() -> None:
    """Measured on a lab: five partitions, 256 KiB per fetch, 80 ms, one task: 8.0 MB/s."""
    report = measured((80, 8_000, ROUND_TRIP), partitions=5)
    report.cells[0].cell = replace(
        report.cells[0].cell, properties={"us.consumer.max.partition.fetch.bytes": "262144"}
    )
    assert predict_task_rate(report, 80, "a.json").rate == pytest.approx(8e6)
    assert predict_task_rate(report, 160, "a.json").rate == pytest.approx(4e6, rel=0.05)


def test_extrapolation_is_said() -> None:
    report = measured((0, 30_000, CPU))
    assert "extrapolated to 80 ms" in predict_task_rate(report, 80, "a.json").how
    assert "never the limit here" in predict_task_rate(report, 80, "a.json").how
    both = measured((0, 30_000, CPU), (80, 11_000, ROUND_TRIP))
    assert "interpolated to 20 ms" in predict_task_rate(both, 20, "a.json").how
    assert "polated" not in predict_task_rate(both, 80, "a.json").how


def test_measurement_without_a_rate_is_refused() -> None:
    with pytest.raises(UserError, match=r"a\.json has no measured rate"):
        predict_task_rate(report_of(PerfMode.LATENCY, [run_of(0.1)]), 0, "a.json")
