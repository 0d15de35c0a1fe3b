"""The figures of the demo: percentiles, rates, and when the picture is whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mm2slo_cli.demo.figures import (
    DemoFigures,
    FlowFigures,
    GroupFigures,
    TopicFigures,
    flow_figures,
)
from mm2slo_cli.demo.latency import Latency, latency, quantile
from mm2slo_cli.demo.meter import Meter, Recent, Throughput
from mm2slo_core.catalogue.buckets import LATENCY_BUCKETS
from mm2slo_core.flow_state import FlowStateName
from mm2slo_core.selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow
from mm2slo_exporter.state.model import FlowInfo, FlowReport, LatencyHistogram, TopicState

US_EU = Flow("us", "eu")
READY = GroupFigures(ready=True, redelivery_lower=0, redelivery_upper=3, blocked=())
BLOCKED = GroupFigures(
    ready=False, redelivery_lower=None, redelivery_upper=None, blocked=("no_checkpoint",)
)
WHOLE = FlowFigures(
    US_EU,
    FlowStateName.RUNNING,
    "position_advances",
    lag_records=0,
    lag_seconds=0.0,
    recent=Recent(Throughput(5.0, 4.0), Latency(0.01, 0.02), Latency(0.01, 0.02)),
    topics={"orders": TopicFigures(10, 10, 10, 0)},
    groups={"a": READY, "b": READY},
)


def counts(**by_bound: int) -> tuple[int, ...]:
    """Counts per bucket: `b0_1=3` puts 3 into the bucket that ends at 0.1 s."""
    bounds = {float(name[1:].replace("_", ".")): n for name, n in by_bound.items()}
    assert bounds.keys() <= set(LATENCY_BUCKETS)
    return (*(bounds.get(bound, 0) for bound in LATENCY_BUCKETS), 0)


def topic(source: int, replicated: int, role: TopicRole = TopicRole.DATA) -> TopicState:
    return TopicState(
        pair=TopicPair("orders", "us.orders", role),
        partitions=(),
        source_partition_count=1,
        target_partition_count=1,
        missing_on_target=False,
        config_drift=(),
        assigned_missing=None,
        unassigned=None,
        source_records_total=source,
        replicated_records_total=replicated,
        lost_records_total=0,
        truncations_total=0,
        source_recreations_total=0,
        target_recreations_total=0,
    )


def report(at: float, *topics: TopicState, canary: tuple[int, ...] | None = None) -> FlowReport:
    return FlowReport(
        flow=US_EU,
        info=FlowInfo("default", ".", "mirrormaker2", "heartbeats"),
        at=at,
        state=FlowStateName.RUNNING,
        state_reason="position_advances",
        ready=True,
        waiting_for=(),
        source_readable=True,
        target_readable=True,
        topics=topics,
        canary_latency=None if canary is None else LatencyHistogram(canary, 0.0),
        lag_records=0,
        lag_seconds=0.0,
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
def test_a_percentile_is_what_histogram_quantile_gives(
    share: float, found: tuple[int, ...], expected: float
) -> None:
    assert quantile(share, found) == pytest.approx(expected)


def test_beyond_the_last_bound_nothing_is_claimed() -> None:
    found = (*[0] * len(LATENCY_BUCKETS), 1)
    assert latency(found) == Latency(None, None)


def test_without_observations_there_is_no_latency() -> None:
    assert latency(counts()) is None
    assert latency(()) is None


@settings(deadline=None)
@given(st.lists(st.floats(0, 299), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_lies_in_the_bucket_of_its_observation(
    seconds: list[float], share: float
) -> None:
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


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    meter = Meter()
    assert meter.read(report(0.0, topic(0, 0))).throughput is None
    assert meter.read(report(5.0, topic(500, 400))).throughput == Throughput(100.0, 80.0)
    assert meter.read(report(15.0, topic(600, 600))).throughput == Throughput(10.0, 20.0)
    assert meter.read(report(15.0, topic(600, 600))).throughput == Throughput(10.0, 20.0)


def test_heartbeats_are_no_traffic() -> None:
    meter = Meter()
    beats = TopicRole.HEARTBEATS
    meter.read(report(0.0, topic(0, 0, beats)))
    assert meter.read(report(10.0, topic(10, 10, beats))).throughput == Throughput(0.0, 0.0)


def test_latencies_are_those_of_the_last_minute() -> None:
    meter = Meter()
    slow, also_fast = counts(b1_0=4), counts(b1_0=4, b0_01=4)
    meter.read(report(0.0, canary=None))
    assert meter.read(report(1.0, canary=slow)).canary == latency(slow)
    assert meter.read(report(30.0, canary=also_fast)).canary == latency(also_fast)
    assert meter.read(report(62.0, canary=also_fast)).canary == latency(counts(b0_01=4))
    assert meter.read(report(95.0, canary=also_fast)).canary is None


def test_a_whole_picture_lacks_nothing() -> None:
    assert DemoFigures((WHOLE, replace(WHOLE, flow=US_EU.reverse)), {}, {}).missing == ()


@pytest.mark.parametrize(
    ("figures", "missing"),
    [
        (
            replace(WHOLE, state=FlowStateName.STOPPED, reason="canaries_silent"),
            "us->eu: not alive: stopped (canaries silent)",
        ),
        (
            replace(WHOLE, state=FlowStateName.UNKNOWN, reason="not_ready"),
            "us->eu: not alive: unknown (not ready)",
        ),
        (replace(WHOLE, lag_records=None), "us->eu: no lag in records"),
        (replace(WHOLE, lag_seconds=None), "us->eu: no lag in seconds"),
        (replace(WHOLE, recent=Recent()), "us->eu: no canary latency"),
        (
            replace(WHOLE, recent=Recent(canary=Latency(0.01, None))),
            "us->eu: no canary latency",
        ),
        (
            replace(WHOLE, groups={"a": READY, "b": BLOCKED}),
            "us->eu: readiness of 1 groups, expected 2",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_flow(figures: FlowFigures, missing: str) -> None:
    other = replace(WHOLE, flow=US_EU.reverse)
    assert DemoFigures((figures, other), {}, {}).missing == (missing,)


def test_an_idle_flow_is_alive() -> None:
    assert replace(WHOLE, state=FlowStateName.IDLE).missing == ()


def test_a_flow_without_a_report_has_no_figures() -> None:
    found = flow_figures(US_EU, None)
    assert found.waiting_for == ("its first round",)
    assert found.missing == (
        "not alive: unknown (not ready)",
        "no lag in records",
        "no lag in seconds",
        "no canary latency",
        "readiness of 0 groups, expected 2",
    )


def test_a_flow_without_partitions_has_no_lag() -> None:
    assert flow_figures(US_EU, report(0.0)).lag_records is None


def test_json_holds_what_the_table_shows() -> None:
    found = WHOLE.to_json()
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
        "blocked": (),
    }
