"""The source side of a flow's topics, before enough was read to track the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_report import PartitionState, TopicState

if TYPE_CHECKING:
    from mm2slo_core.topic_selection import TopicPair
    from mm2slo_exporter.observation import Observation, OffsetsRead


def source_topics(seen: Observation) -> tuple[TopicState, ...]:
    """Topics with offsets of the source alone; none while it is unreadable. Counts nothing."""
    read = seen.source_offsets
    if read is None or not seen.source_readable:
        return ()
    return tuple(
        _topic(pair, seen.source.topics.get(pair.source), read) for pair in seen.plan.pairs
    )


def _topic(pair: TopicPair, count: int | None, read: OffsetsRead) -> TopicState:
    return TopicState(
        pair=pair,
        partitions=tuple(
            _partition(TopicPartition(pair.source, number), read) for number in range(count or 0)
        ),
        source_partition_count=count,
    )


def _partition(partition: TopicPartition, read: OffsetsRead) -> PartitionState:
    return PartitionState(
        partition=partition.partition,
        source_start=read.starts.get(partition),
        source_end=read.ends.get(partition),
    )
