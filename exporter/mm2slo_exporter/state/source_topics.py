"""The source side of a flow's topics, before enough was read to track the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.replication_lag import LagOrigin
from mm2slo_core.stall_watch import Progress
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
        target_partition_count=None,
        missing_on_target=False,
        config_drift=(),
        assigned_missing=None,
        unassigned=None,
        source_records_total=0,
        replicated_records_total=0,
        lost_records_total=0,
        truncations_total=0,
        source_recreations_total=0,
        target_recreations_total=0,
    )


def _partition(partition: TopicPartition, read: OffsetsRead) -> PartitionState:
    return PartitionState(
        partition=partition.partition,
        source_start=read.starts.get(partition),
        source_end=read.ends.get(partition),
        target_start=None,
        target_end=None,
        next_offset=None,
        quality=None,
        lag_records=None,
        lag_seconds=None,
        lag_origin=LagOrigin.ABSENT,
        progress=Progress.UNKNOWN,
        progressed_at=None,
        headroom=None,
        sync_upstream=None,
        sync_at=None,
        open_transaction_records=None,
    )
