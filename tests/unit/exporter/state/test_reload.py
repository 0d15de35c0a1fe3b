"""A flow whose configuration is reloaded continues its counters."""

from typing import Any

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    HeartbeatSeen,
    Produced,
    RestoreFinished,
    Scheduled,
)
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker

FLOW = "us->eu"
SENT = (
    RestoreFinished(FLOW, 1.0),
    Scheduled(FLOW, 1, 0, 1.0),
    Produced(FLOW, 1, 0, 5, 1.0),
    Arrived(FLOW, 1, 0, 1.5),
    HeartbeatSeen(FLOW, "us", 1.0, 1.1, replayed=False),
)


def tracker(previous: FlowTracker | None = None, at: float = 0.0, **settings: Any) -> FlowTracker:
    return FlowTracker(
        flow_config(**settings),
        carrier=CanaryCarrier.HEARTBEATS,
        shared_target=False,
        started_at=at,
        previous=previous,
    )


def observed(scene: Scene) -> tuple[FlowTracker, FlowReport]:
    """A flow that has replicated 5 of 20 records, lost 4, and received a canary."""
    first = tracker()
    log = scene.add("orders")
    log.live(0, 0)
    first.update(scene.look(1.0, *SENT))
    log.live(1, 20)
    first.update(scene.look(20.0))
    log.start = 5
    first.update(scene.look(25.0))
    first.update(scene.look(30.0))
    log.live(5 - 4, 20)
    first.update(scene.look(35.0))
    scene.save_losses(first)
    return first, first.update(scene.look(36.0))


@pytest.mark.parametrize(
    "settings",
    [{}, {"stall_after": "60s", "slice": "20s", "canary": {"deadline": "90s"}}],
    ids=["cluster changed", "flow changed"],
)
def test_reload_continues_counters_and_histograms(settings: dict[str, Any]) -> None:
    scene = Scene()
    before, report = observed(scene)
    assert report.totals.source_records_total == 20
    assert report.totals.lost_records_total == 4
    assert report.canary is not None
    assert (report.canary.sent, report.canary.received) == (1, 1)
    after = tracker(before, at=40.0, **settings)
    assert after.first_report(40.0).slis == report.slis
    found = after.update(scene.look(40.0))
    assert found.totals == report.totals
    assert found.topics[0].lost_records_total == 4
    assert found.canary == report.canary
    assert found.canary_latency == report.canary_latency
    assert found.heartbeats.received_total == 1
    freshness = SliKey(Sli.DATA_FRESHNESS, "default")
    assert found.slis[freshness].total >= report.slis[freshness].total > 0
    scene.logs[next(iter(scene.logs))].end = 22
    assert after.update(scene.look(45.0)).totals.source_records_total == 22


def test_reload_with_another_policy_counts_topics_from_zero_and_keeps_totals() -> None:
    scene = Scene()
    before, report = observed(scene)
    after = tracker(before, at=40.0, policy={"kind": "identity"})
    found = after.update(scene.look(40.0))
    assert found.totals == report.totals
    assert found.topics[0].source_records_total == 0
