"""A topic that disappears and reappears is identified by its id."""

import pytest

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.state.flow_tracker import FlowTracker

ORDERS = TopicPair("orders", "us.orders", TopicRole.DATA)
PARTITION = TopicPartition("orders", 0)
COPY = TopicPartition("us.orders", 0)


def tracker() -> FlowTracker:
    flow = FlowConfig.model_validate({"flow": "us->eu"})
    return FlowTracker(flow, carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0)


def seen(at: float, topic_id: str | None, end: int = 10) -> Observation:
    """A round in which *orders* has this id; None: it does not exist."""
    there = topic_id is not None
    return Observation(
        at=at,
        plan=FlowPlan((ORDERS,) if there else ()),
        source=ClusterView(
            topics={"orders": 1} if there else {},
            topic_ids={} if topic_id is None else {"orders": topic_id},
            topics_read_at=at,
        ),
        target=ClusterView(topics={"us.orders": 1}, topics_read_at=at),
        internals=InternalsView(committed={PARTITION: 9}),
        source_offsets=OffsetsRead(
            ends={PARTITION: end} if there else {},
            starts={PARTITION: 0} if there else {},
            requested_at=at,
            answered_at=at,
        ),
        target_offsets=OffsetsRead(
            ends={COPY: 10}, starts={COPY: 0}, requested_at=at, answered_at=at
        ),
        source_readable=True,
        target_readable=True,
    )


@pytest.mark.parametrize(("away", "counted"), [(5.0, 1), (3000.0, 1), (4000.0, 0)])
def test_topic_deleted_within_an_hour_counts_as_recreated(away: float, counted: int) -> None:
    flow = tracker()
    flow.update(seen(100.0, "first"))
    flow.update(seen(105.0, None))
    flow.update(seen(105.0 + away, None))
    (topic,) = flow.update(seen(110.0 + away, "second", end=3)).topics
    assert topic.source_recreations_total == counted
    assert topic.lost_records_total == 0


def test_topic_that_reappears_with_same_id_is_not_recreated() -> None:
    flow = tracker()
    flow.update(seen(100.0, "first"))
    flow.update(seen(105.0, None))
    (topic,) = flow.update(seen(110.0, "first")).topics
    assert topic.source_recreations_total == 0
