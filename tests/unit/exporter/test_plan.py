"""Which partitions of a flow are watched."""

from __future__ import annotations

from mm2slo_core.selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.plan import FlowPlan

DATA = TopicRole.DATA


def test_partitions_are_those_that_exist_on_each_side() -> None:
    wanted = FlowPlan((TopicPair("a", "us.a", DATA), TopicPair("b", "us.b", DATA)))
    assert wanted.source_partitions({"a": 2, "b": 1, "other": 9}) == (
        TopicPartition("a", 0),
        TopicPartition("a", 1),
        TopicPartition("b", 0),
    )
    assert wanted.target_partitions({"us.a": 1, "a": 5}) == (TopicPartition("us.a", 0),)
