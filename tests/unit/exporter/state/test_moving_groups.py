"""A group that commits between the reads of its commits and its checkpoints."""

import pytest
from flow_observations import flow_config

from mm2slo_core.indicators.flow_state import PartitionProgress
from mm2slo_core.indicators.group_readiness import (
    Blocked,
    BlockReason,
    GroupReadiness,
    NewestCheckpoint,
)
from mm2slo_core.indicators.replication_lag import LagOrigin
from mm2slo_core.offset_translation import Bounds, Failover, Head, PositionQuality
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.state.failover_readiness import GroupJudge
from mm2slo_exporter.state.flow_report import PartitionState, TopicState

PARTITION, COPY = TopicPartition("orders", 0), TopicPartition("us.orders", 0)
READ_AT = 1000.0
PAIR = TopicPair("orders", "us.orders", TopicRole.DATA)


class SameOffsets:
    """A copy with the offsets of the source."""

    def failover(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Failover:
        del head
        records = max(upstream_offset - downstream_offset, 0)
        return Failover(Bounds(upstream_offset, upstream_offset), Bounds(records, records))

    def reaches(self, upstream_offset: int) -> bool:
        return upstream_offset >= 0


def checkpoint(received_at: float) -> NewestCheckpoint:
    """A checkpoint; the clock of MirrorMaker 2 is an hour behind."""
    return NewestCheckpoint(140, 135, received_at - 3600, received_at)


def judged(
    *, commit: int, newest: NewestCheckpoint, unreadable: frozenset[str] = frozenset()
) -> GroupReadiness:
    partition = PartitionState(
        partition=0,
        source_start=0,
        source_end=500,
        target_start=0,
        target_end=500,
        next_offset=500,
        quality=PositionQuality.LIVE,
        lag_records=0,
        lag_seconds=0.0,
        lag_origin=LagOrigin.NO_BACKLOG,
        progress=PartitionProgress.IDLE,
        progressed_at=None,
        headroom=None,
        sync_upstream=None,
        sync_at=None,
        open_transaction_records=None,
    )
    topic = TopicState(
        pair=PAIR,
        partitions=(partition,),
        source_partition_count=1,
        target_partition_count=1,
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
    seen = Observation(
        at=READ_AT + 10,
        plan=FlowPlan((PAIR,)),
        source=ClusterView(
            group_offsets={"app": {PARTITION: commit}},
            unreadable_groups=unreadable,
            groups_read_at={"app": READ_AT},
        ),
        target=ClusterView(groups_complete=True),
        internals=InternalsView(
            offset_map=lambda _partition: SameOffsets(),
            checkpoints={"app": {COPY: newest}},
        ),
        source_offsets=None,
        target_offsets=OffsetsRead(ends={COPY: 500}, starts={COPY: 0}),
        source_readable=True,
        target_readable=True,
    )
    (state,) = GroupJudge(flow_config()).judge(seen, [topic])
    return state.readiness


def test_checkpoint_received_after_group_read_provides_commit() -> None:
    found = judged(commit=100, newest=checkpoint(READ_AT + 3))
    assert found.ready
    assert found.checkpoint_lag == 0
    assert (found.redelivery_lower, found.redelivery_upper) == (5, 5)


def test_commit_ahead_of_newer_checkpoint_is_kept() -> None:
    found = judged(commit=160, newest=checkpoint(READ_AT + 3))
    assert found.checkpoint_lag == 20
    assert (found.redelivery_lower, found.redelivery_upper) == (25, 25)


@pytest.mark.parametrize("age", [0.001, 3600.0])
def test_commit_behind_older_checkpoint_is_rewind(age: float) -> None:
    found = judged(commit=100, newest=checkpoint(READ_AT - age))
    assert not found.ready
    assert found.checkpoint_lag == -40
    assert found.blocked == (Blocked(BlockReason.WOULD_SKIP_RECORDS, PARTITION, 35),)


def test_checkpoint_provides_commit_of_unreadable_group() -> None:
    found = judged(
        commit=100,
        newest=checkpoint(READ_AT - 1),
        unreadable=frozenset({"app"}),
    )
    assert found.checkpoint_lag == 0
    assert found.blocked == (Blocked(BlockReason.SOURCE_UNREADABLE),)
