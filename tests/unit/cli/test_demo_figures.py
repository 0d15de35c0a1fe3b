"""Figures of the demo: percentiles, rates, completeness."""

from dataclasses import replace

import pytest
from demo_flows import COMPLETE, RUNNING, US_EU, changed, group
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_cli.demo_figures import (
    ActivityMeter,
    DemoFigures,
    FlowFigures,
    LatencyPercentiles,
    RecentActivity,
    RecentThroughput,
    latency_percentiles,
    quantile,
    unread_report,
)
from mm2slo_core.catalogue.metric import LATENCY_BUCKETS
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.group_readiness import BlockReason
from mm2slo_exporter.state.flow_report import FlowReport, FlowTotals, LatencyHistogram

REVERSE = changed(COMPLETE, flow=US_EU.reverse)


def counts(**by_bound: int) -> tuple[int, ...]:
    """Counts per bucket: `b0_1=3` adds 3 to the bucket with bound 0.1 s."""
    bounds = {float(name[1:].replace("_", ".")): n for name, n in by_bound.items()}
    assert bounds.keys() <= set(LATENCY_BUCKETS)
    return (*(bounds.get(bound, 0) for bound in LATENCY_BUCKETS), 0)


def report(
    at: float, source: int = 0, replicated: int = 0, canary: tuple[int, ...] | None = None
) -> FlowReport:
    return replace(
        RUNNING,
        at=at,
        totals=FlowTotals(source_records_total=source, replicated_records_total=replicated),
        canary_latency=None if canary is None else LatencyHistogram(canary, 0.0),
    )


@pytest.mark.parametrize(
    ("share", "found", "expected"),
    [
        (0.5, counts(b0_01=4), 0.0075),  # half-way from 0.005 to 0.01
        (0.5, counts(b0_005=2, b0_01=2), 0.005),
        (0.99, counts(b0_005=1), 0.00495),
        (0.99, counts(b0_01=98, b1_0=2), 0.75),  # the first of two from 0.5 to 1
    ],
)
def test_quantile_equals_histogram_quantile(
    share: float, found: tuple[int, ...], expected: float
) -> None:
    assert quantile(share, found) == pytest.approx(expected)


def test_percentiles_above_last_bound_are_unknown() -> None:
    found = (*[0] * len(LATENCY_BUCKETS), 1)
    assert latency_percentiles(found) == LatencyPercentiles(None, None)


def test_percentiles_without_observations_are_none() -> None:
    assert latency_percentiles(counts()) is None
    assert latency_percentiles(()) is None


@given(st.lists(st.floats(0, 299), min_size=1, max_size=50), st.floats(0.01, 1))
def test_quantile_is_within_bucket_of_its_observation(seconds: list[float], share: float) -> None:
    histogram = [0] * (len(LATENCY_BUCKETS) + 1)
    for each in seconds:
        histogram[sum(bound < each for bound in LATENCY_BUCKETS)] += 1
    rank = next(i for i in range(len(seconds)) if i + 1 >= share * len(seconds))
    truth = sorted(seconds)[rank]
    upper = min(bound for bound in LATENCY_BUCKETS if bound >= truth)
    lower = max((bound for bound in LATENCY_BUCKETS if bound < truth), default=0.0)
    found = quantile(share, tuple(histogram))
    assert found is not None
    assert lower <= found <= upper * (1 + 1e-9)


def test_throughput_covers_last_ten_seconds() -> None:
    meter = ActivityMeter()
    assert meter.read(report(0.0, 0, 0)).throughput is None
    assert meter.read(report(5.0, 500, 400)).throughput == RecentThroughput(100.0, 80.0)
    assert meter.read(report(15.0, 600, 600)).throughput == RecentThroughput(10.0, 20.0)
    assert meter.read(report(15.0, 600, 600)).throughput == RecentThroughput(10.0, 20.0)


def test_latencies_cover_last_minute() -> None:
    meter = ActivityMeter()
    slow, also_fast = counts(b1_0=4), counts(b1_0=4, b0_01=4)
    meter.read(report(0.0, canary=None))
    assert meter.read(report(1.0, canary=slow)).canary == latency_percentiles(slow)
    assert meter.read(report(30.0, canary=also_fast)).canary == latency_percentiles(also_fast)
    assert meter.read(report(62.0, canary=also_fast)).canary == latency_percentiles(counts(b0_01=4))
    assert meter.read(report(95.0, canary=also_fast)).canary is None


def test_complete_figures_miss_nothing() -> None:
    assert DemoFigures((COMPLETE, REVERSE), {}, {}).missing == ()


@pytest.mark.parametrize(
    ("figures", "missing"),
    [
        (
            changed(COMPLETE, state=FlowStateName.STOPPED, state_reason="canaries_silent"),
            "us->eu: flow is stopped (canaries silent)",
        ),
        (
            changed(COMPLETE, state=FlowStateName.UNKNOWN, state_reason="not_ready"),
            "us->eu: flow is unknown (not ready)",
        ),
        (changed(COMPLETE, lag_records=None), "us->eu: no lag in records"),
        (changed(COMPLETE, lag_seconds=None), "us->eu: no lag in seconds"),
        (replace(COMPLETE, recent=RecentActivity()), "us->eu: no canary latency"),
        (
            replace(COMPLETE, recent=RecentActivity(canary=LatencyPercentiles(0.01, None))),
            "us->eu: no canary latency",
        ),
        (
            changed(
                COMPLETE,
                groups=(group("a"), group("b", None, None, BlockReason.NO_CHECKPOINT)),
            ),
            "us->eu: readiness known for 1 groups, expected 2",
        ),
    ],
)
def test_missing_figures_name_their_flow(figures: FlowFigures, missing: str) -> None:
    assert DemoFigures((figures, REVERSE), {}, {}).missing == (missing,)


def test_idle_flow_misses_nothing() -> None:
    assert changed(COMPLETE, state=FlowStateName.IDLE).missing == []


def test_flow_without_report_has_no_figures() -> None:
    figures = FlowFigures(unread_report(US_EU))
    assert figures.report.waiting_for == ("the first collection",)
    assert figures.missing == [
        "flow is unknown (not ready)",
        "no lag in records",
        "no lag in seconds",
        "no canary latency",
        "readiness known for 0 groups, expected 2",
    ]


def test_flow_without_partitions_has_unknown_lag() -> None:
    assert changed(COMPLETE, topics=()).lag.records is None


def test_to_json_contains_displayed_figures() -> None:
    found = COMPLETE.to_json()
    assert found["canary_latency_seconds"] == {"p50": 0.01, "p99": 0.02}
    assert found["records_per_second"] == {"source": 5.0, "target": 4.0}
    assert found["retention_headroom"] is None
    assert found["topics"] == {
        "orders": {"source_end": 10, "target_end": 10, "replicated": 10, "lag_records": 0}
    }
    assert found["groups"]["a"] == {
        "ready": True,
        "redelivery_lower": 0,
        "redelivery_upper": 3,
        "blocked": [],
        "unreplicated_records": None,
        "unreplicated_seconds": None,
    }
