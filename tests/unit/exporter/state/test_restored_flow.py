"""Nothing is counted or published before the state of a flow is restored."""

from __future__ import annotations

from flow_observations import Scene, flow_config

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.flow_state import FlowStateName, StateReason
from mm2slo_core.timeline_record import PollTimes
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.timeline.timeline_restore import RestoredPoll

TIMELINE = "mm2slo.watermarks.internal on eu"
ORDERS = TopicPartition("orders", 0)
POLL = RestoredPoll(ORDERS, None, 90, PollTimes(50.0, 50.1, None, None))


def tracker() -> FlowTracker:
    made = FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=100.0
    )
    made.restoring = TIMELINE
    return made


def test_topics_wait_for_the_restored_state() -> None:
    scene = Scene()
    scene.add("orders").live(100, 100)
    flow = tracker()
    report = flow.update(scene.look(105.0))
    assert (report.ready, report.waiting_for) == (False, (TIMELINE,))
    (topic,) = report.topics
    assert (topic.partitions[0].source_end, topic.partitions[0].lag_records) == (100, None)
    assert (report.state, report.state_reason) == (FlowStateName.UNKNOWN, StateReason.NOT_READY)
    flow.topics.restore([POLL, POLL._replace(end=95, times=PollTimes(55.0, 55.1, 50.0, 50.1))])
    flow.restoring = None
    report = flow.update(scene.look(110.0))
    assert report.ready
    assert report.totals.source_records_total == 5  # appended since the newest record


def test_lag_in_seconds_is_unknown_while_a_partition_with_lag_waits_for_its_probe() -> None:
    scene = Scene()
    scene.add("orders").live(100, 100)
    scene.add("payments").live(10, 30)
    flow = tracker()
    flow.restoring = None
    report = flow.update(scene.look(105.0))
    assert report.lag_records == 20
    assert report.lag_seconds is None


def test_source_offsets_are_published_while_the_target_is_down() -> None:
    scene = Scene()
    scene.add("orders", partitions=2).live(40, 100)
    scene.target_readable = False
    flow = tracker()
    report = flow.update(scene.look(105.0))
    assert not report.ready
    assert [state.source_end for state in report.topics[0].partitions] == [100, 0]
    assert (report.lag_records, report.totals.source_records_total) == (None, 0)
    scene.source_readable = False
    assert flow.update(scene.look(110.0)).topics == ()
