"""The clock of the exporter is set back: nothing waits for the stored times."""

from collections.abc import Iterator

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import FlowStateName, StateReason
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    CanaryEvent,
    HeartbeatSeen,
    Produced,
    ReadUpTo,
    RestoreFinished,
    Scheduled,
)
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker

FLOW = "us->eu"
BEFORE, AFTER = 10_000.0, 6_400.0
FRESHNESS = SliKey(Sli.DATA_FRESHNESS, "default")
AVAILABILITY = SliKey(Sli.AVAILABILITY)


def tracker(carrier: CanaryCarrier = CanaryCarrier.OFF) -> FlowTracker:
    flow = flow_config(freshness=[{"name": "default", "topics": [".*"], "threshold": "30s"}])
    return FlowTracker(flow, carrier=carrier, shared_target=False, started_at=BEFORE)


def busy_until_step(scene: Scene, flow: FlowTracker) -> FlowReport:
    """Ten rounds of a flow that replicates and gets heartbeats."""
    log = scene.add("orders")
    for step in range(10):
        log.live(step, step)
        at = BEFORE + 5.0 * step
        report = flow.update(scene.look(at, HeartbeatSeen(FLOW, "us", at, at, replayed=False)))
    assert report.state is FlowStateName.RUNNING
    return report


@pytest.mark.parametrize("step", [-3600.0, -86_400.0, -10.0])
def test_stop_is_found_after_clock_was_set_back(step: float) -> None:
    scene, flow = Scene(), tracker()
    busy_until_step(scene, flow)
    log = next(iter(scene.logs.values()))
    log.live(9, 500)
    at = BEFORE + 45.0 + step
    # The last heartbeat arrived before the step, and was not processed yet.
    last = HeartbeatSeen(FLOW, "us", BEFORE + 45.0, BEFORE + 45.0, replayed=False)
    found = [flow.update(scene.look(at, last))]
    found += [flow.update(scene.look(at + 5.0 * number)) for number in range(1, 8)]
    states = [(each.state, each.state_reason) for each in found]
    assert states[:6] == [(FlowStateName.RUNNING, StateReason.HEARTBEATS_ARRIVE)] * 6
    assert states[6:] == [(FlowStateName.STOPPED, StateReason.BACKLOG_STALLED)] * 2


def test_counters_continue_and_slices_are_counted_after_clock_was_set_back() -> None:
    scene, flow = Scene(), tracker()
    before = busy_until_step(scene, flow)
    assert before.slis[FRESHNESS] == SliCount(3, 3, 0)
    for number in range(13):
        report = flow.update(scene.look(AFTER + 5.0 * number))
    assert report.slis[FRESHNESS] == SliCount(7, 7, 0)
    assert report.totals == before.totals
    assert report.heartbeats.age_seconds == 60.0
    assert report.heartbeats.received_total == before.heartbeats.received_total


def test_recovery_point_has_no_negative_age_after_clock_was_set_back() -> None:
    scene, flow = Scene(), tracker()
    busy_until_step(scene, flow)
    scene.source_readable = False
    point = flow.update(scene.look(AFTER)).recovery_point
    assert point is not None
    assert point.records == 0
    assert point.read_at == pytest.approx(AFTER - 0.2)


def canaries(first: int, at: float, arrive: range) -> Iterator[CanaryEvent]:
    for sequence in range(first, first + 5):
        yield Scheduled(FLOW, sequence, 0, at)
        yield Produced(FLOW, sequence, 0, sequence, at)
        if sequence in arrive:
            yield Arrived(FLOW, sequence, 0, at + 0.5)
    yield ReadUpTo(FLOW, 0, first, at + 0.5)


def test_canaries_are_settled_at_their_deadline_after_clock_was_set_back() -> None:
    scene, flow = Scene(), tracker(CanaryCarrier.TOPIC)
    scene.add("orders").live(9, 9)
    flow.update(scene.look(BEFORE, RestoreFinished(FLOW, BEFORE)))
    # Two of five arrive before the step, and one after it.
    flow.update(scene.look(BEFORE + 5.0, *canaries(1, BEFORE + 1.0, range(1, 3))))
    stepped = flow.update(scene.look(AFTER, Arrived(FLOW, 3, 0, AFTER)))
    assert stepped.slis[AVAILABILITY].unknown == 2
    counted = stepped.slis[AVAILABILITY]
    sent = flow.update(scene.look(AFTER + 5.0, *canaries(6, AFTER + 1.0, range(6, 9))))
    assert sent.slis[AVAILABILITY] == SliCount(counted.good + 3, counted.total + 3, 2)
    assert sent.canary_arrived_at == AFTER + 1.5
    due = flow.update(scene.look(AFTER + 70.0, ReadUpTo(FLOW, 0, 11, AFTER + 70.0)))
    assert due.slis[AVAILABILITY] == SliCount(counted.good + 3, counted.total + 5, 2)
