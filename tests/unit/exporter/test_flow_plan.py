"""The partitions of a flow on both clusters."""

from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_plan import FlowPlan

DATA = TopicRole.DATA


def test_flow_plan_lists_existing_partitions_per_side() -> None:
    wanted = FlowPlan((TopicPair("a", "us.a", DATA), TopicPair("b", "us.b", DATA)))
    assert wanted.source_partitions({"a": 2, "b": 1, "other": 9}) == (
        TopicPartition("a", 0),
        TopicPartition("a", 1),
        TopicPartition("b", 0),
    )
    assert wanted.target_partitions({"us.a": 1, "a": 5}) == (TopicPartition("us.a", 0),)
