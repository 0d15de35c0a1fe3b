"""Totals of a flow grow by the growth of its topics, whichever topics exist."""

from flow_observations import Scene, flow_config
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import StateReason
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_report import FlowTotals
from mm2slo_exporter.state.flow_tracker import FlowTracker

PAY = TopicPartition("pay", 0)


def tracker() -> FlowTracker:
    return FlowTracker(
        flow_config(stall_after="30s"),
        carrier=CanaryCarrier.OFF,
        shared_target=False,
        started_at=0.0,
    )


def two_topics() -> tuple[Scene, FlowTracker]:
    """Topics *orders* and *pay*, of which *pay* has lost 60 records."""
    scene, flow = Scene(), tracker()
    scene.add("orders").live(10, 10)
    scene.add("pay").live(40, 40)
    scene.add("heartbeats", role=TopicRole.HEARTBEATS).live(5, 5)
    flow.update(scene.look(100.0))
    scene.logs[TopicPartition("orders", 0)].live(15, 15)
    scene.logs[TopicPartition("heartbeats", 0)].live(9, 9)
    scene.logs[PAY].end = scene.logs[PAY].start = 100
    flow.update(scene.look(105.0))
    flow.update(scene.look(110.0))
    scene.save_losses(flow)
    found = flow.update(scene.look(112.0))
    assert found.totals == FlowTotals(
        source_records_total=65, replicated_records_total=5, lost_records_total=60
    )
    return scene, flow


def test_deleted_topic_leaves_totals_unchanged() -> None:
    scene, flow = two_topics()
    before = flow.update(scene.look(115.0)).totals
    scene.drop("pay")
    assert flow.update(scene.look(120.0)).totals == before
    # An hour later the topic is forgotten; a new one with its name starts at 0.
    assert flow.update(scene.look(4000.0)).totals == before
    scene.add("pay").live(3, 3)
    assert flow.update(scene.look(4005.0)).totals == before
    scene.logs[PAY].live(10, 10)
    assert flow.update(scene.look(4010.0)).totals == FlowTotals(
        source_records_total=72, replicated_records_total=12, lost_records_total=60
    )


def test_topic_that_reappears_is_no_progress() -> None:
    scene, flow = two_topics()
    scene.logs[TopicPartition("orders", 0)].end = 25
    flow.update(scene.look(115.0))
    scene.drop("orders")
    flow.update(scene.look(120.0))
    flow.update(scene.look(1000.0))
    scene.add("orders").live(15, 25)
    found = flow.update(scene.look(1005.0))
    assert found.totals.replicated_records_total == 5
    assert found.state_reason is StateReason.BACKLOG_STALLED


@given(st.lists(st.tuples(st.sampled_from(["orders", "pay"]), st.integers(0, 50)), max_size=30))
def test_totals_are_sums_of_growth(steps: list[tuple[str, int]]) -> None:
    scene, flow = Scene(), tracker()
    ends: dict[str, int] = {}
    grown = 0
    for step, (topic, count) in enumerate(steps):
        if count == 0 and topic in scene.roles:
            scene.drop(topic)
        elif topic not in scene.roles:
            scene.add(topic).live(ends.setdefault(topic, 0), ends[topic])
        else:
            ends[topic] += count
            grown += count
            scene.logs[TopicPartition(topic, 0)].live(ends[topic], ends[topic])
        found = flow.update(scene.look(100.0 + step)).totals
        assert (found.source_records_total, found.replicated_records_total) == (grown, grown)
