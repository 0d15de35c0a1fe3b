"""Flows of other engines, measured by offsets and canaries only."""

from typing import Any

import pytest
from exporter_watch import Scrape, counters_never_decreased, watch
from steady_load import SteadyLoad

from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("failover-lab")]

FLOW = "us->eu"
MIRRORMAKER_METRICS = (
    "mm2_flow_lag_records",
    "mm2_replication_lag_records",
    "mm2_replication_lag_seconds",
    "mm2_replicated_source_offset",
    "mm2_replicated_records_total",
    "mm2_stalled_partitions",
    "mm2_retention_lost_records_total",
    "mm2_heartbeats_present",
    "mm2_failover_ready",
    "mm2_task_state",
)


def summed(scrape: Scrape, name: str, **labels: str) -> float:
    return sum(scrape.values(name, flow=FLOW, **labels).values())


def mirrormaker_metrics(scrape: Scrape) -> dict[str, object]:
    """Published metrics that only MirrorMaker 2's internal topics could provide."""
    return {
        name: found for name in MIRRORMAKER_METRICS if (found := scrape.values(name, flow=FLOW))
    }


def indicators(scrape: Scrape) -> set[str]:
    return set(scrape.by("sli", "mm2_sli_events_total", flow=FLOW))


def test_dual_produce_flow_is_measured(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 2)
    eu.admin.create_topic(fresh_topic, 3)
    flow: dict[str, Any] = {
        "engine": "dual-produce",
        "policy": {"kind": "identity"},
        "topics": [fresh_topic],
        "stall_after": "3s",
        "canary": {"carrier": "off"},
    }
    with (
        SteadyLoad(us.librdkafka(), fresh_topic, (0, 1)),
        watch(lab, [FLOW], flow=flow, exporter={"instance": fresh_topic}) as seen,
    ):
        seen.until_ready()
        with SteadyLoad(eu.librdkafka(), fresh_topic, (1, 2)):
            seen.until(lambda s: s.state(FLOW) == "running", "records on both sides")
            moved = seen.after_cycles()
            assert moved.state(FLOW) == "running"
            assert summed(moved, "mm2_target_end_offset", topic=fresh_topic) > 0
            assert moved.value("mm2_partition_drift", flow=FLOW, topic=fresh_topic) == 1
            assert moved.value("mm2_flow_info", flow=FLOW, engine="dual-produce") == 1
        # The target's producer has stopped, the source's continues.
        stopped = seen.until(lambda s: s.state(FLOW) == "stopped", "the state stopped")
        assert summed(stopped, "mm2_source_end_offset", topic=fresh_topic) > summed(
            moved, "mm2_source_end_offset", topic=fresh_topic
        )
        with SteadyLoad(eu.librdkafka(), fresh_topic, (2,)):
            again = seen.until(lambda s: s.state(FLOW) == "running", "both sides again")
    assert [mirrormaker_metrics(scrape) for scrape in (moved, stopped, again)] == [{}, {}, {}]
    assert indicators(again) == set()
    assert counters_never_decreased(seen.scrapes) == []


def test_other_engine_is_measured_by_canaries_on_own_topic(lab: Lab, fresh_topic: str) -> None:
    """MirrorMaker 2 replicates, but its internal topics are not read."""
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    flow: dict[str, Any] = {
        "engine": "other",
        "topics": [fresh_topic, r"mm2slo\.canary"],
        "stall_after": "5s",
        "canary": {
            "carrier": "topic",
            "interval": "500ms",
            "deadline": "5s",
            "latency_tiers": ["5s"],
        },
    }
    with watch(lab, [FLOW], flow=flow, exporter={"instance": fresh_topic}) as seen:
        seen.until_ready()
        works = seen.until(lambda s: s.sli(FLOW, "availability")[0] >= 5, "canaries")
        assert works.state(FLOW) == "idle"
        lab.mm2.pause()
        try:
            seen.until(lambda s: s.state(FLOW) == "stopped", "the state stopped")
            bad = seen.until(
                lambda s: s.sli(FLOW, "availability")[1] >= works.sli(FLOW, "availability")[1] + 10,
                "canaries past their deadline",
            )
            sent = bad.value("mm2_canary_sent_total", flow=FLOW)
            assert sent is not None
            # Missing canaries are pending, because no position proves a loss.
            assert bad.sli(FLOW, "completeness")[1] < sent
            assert bad.value("mm2_canary_lost_total", flow=FLOW) == 0
        finally:
            lab.mm2.resume()
        end = seen.until(
            lambda s: s.sli(FLOW, "completeness")[1] >= sent and s.state(FLOW) == "idle",
            "all canaries of the pause",
        )
    good, total, unknown = end.sli(FLOW, "completeness")
    assert (good, unknown) == (total, 0)
    assert [mirrormaker_metrics(scrape) for scrape in (works, bad, end)] == [{}, {}, {}]
    assert indicators(end) == {
        "availability",
        "latency",
        "completeness",
        "uniqueness",
        "order",
        "affinity",
    }
