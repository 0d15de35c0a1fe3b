from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.flow_offsets import SyncRuns, Untranslated
from mm2slo_core.group_evidence import (
    GroupEvidence,
    LogRange,
    NewestCheckpoint,
    PartitionEvidence,
)
from mm2slo_core.group_readiness import Blocked, BlockReason, ReadinessLimits, evaluate_group
from mm2slo_core.topology import TopicPartition

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
NOW = 10_000.0
LIMITS = ReadinessLimits(max_redelivery_records=100, max_checkpoint_lag_records=50)


def runs(*syncs: tuple[int, int]) -> SyncRuns:
    found = SyncRuns()
    for upstream, downstream in syncs:
        found.add(upstream, downstream)
    return found


# Target offsets are 500 lower than source offsets; the group's commit 1000 is 500 on the target.
GOOD = PartitionEvidence(
    source=ORDERS,
    commit=1000,
    checkpoint=NewestCheckpoint(upstream=990, downstream=480, at=NOW - 30),
    target_log=LogRange(0, 700),
    source_end=1200,
    offset_map=runs((900, 400), (1100, 600)),
)


def group(*partitions: PartitionEvidence) -> GroupEvidence:
    return GroupEvidence("billing", partitions)


def test_group_with_recent_checkpoint_is_ready() -> None:
    found = evaluate_group(group(GOOD), LIMITS, NOW)
    assert (found.ready, found.blocked) == (True, ())
    assert (found.checkpoint_lag, found.redelivery_lower, found.redelivery_upper) == (10, 20, 20)


def test_group_values_are_sums_over_partitions() -> None:
    other = GOOD._replace(source=PAYMENTS, checkpoint=NewestCheckpoint(960, 450, NOW))
    found = evaluate_group(group(GOOD, other), LIMITS, NOW)
    assert (found.checkpoint_lag, found.redelivery_lower, found.redelivery_upper) == (50, 70, 70)
    assert found.ready


def test_redelivery_without_offset_map_is_bounded_by_target_log() -> None:
    found = evaluate_group(group(GOOD._replace(offset_map=None)), LIMITS, NOW)
    assert (found.redelivery_lower, found.redelivery_upper) == (0, 220)
    assert found.blocked == (Blocked(BlockReason.REDELIVERY_OVER_LIMIT, ORDERS, 220),)


def test_redelivery_of_commit_beyond_head_is_bounded_by_target_end() -> None:
    ahead = GOOD._replace(commit=1190, target_log=LogRange(0, 610))
    found = evaluate_group(group(ahead), replace(LIMITS, max_checkpoint_lag_records=500), NOW)
    assert found.redelivery_upper == 130


@pytest.mark.parametrize(
    ("case", "evidence", "expected"),
    [
        (
            "no checkpoint",
            GOOD._replace(checkpoint=None),
            Blocked(BlockReason.NO_CHECKPOINT, ORDERS),
        ),
        (
            "no offset sync",
            GOOD._replace(checkpoint=None, untranslated=Untranslated.NO_SYNC),
            Blocked(BlockReason.NO_OFFSET_SYNC, ORDERS),
        ),
        (
            "behind all syncs",
            GOOD._replace(checkpoint=None, untranslated=Untranslated.BEHIND_OLDEST_SYNC),
            Blocked(BlockReason.BEHIND_OLDEST_SYNC, ORDERS),
        ),
        (
            "stale",
            GOOD._replace(checkpoint=NewestCheckpoint(949, 480, NOW)),
            Blocked(BlockReason.CHECKPOINT_STALE, ORDERS, 51),
        ),
        (
            "too much to read again",
            GOOD._replace(checkpoint=NewestCheckpoint(990, 399, NOW)),
            Blocked(BlockReason.REDELIVERY_OVER_LIMIT, ORDERS, 101),
        ),
        (
            "expired",
            GOOD._replace(target_log=LogRange(490, 700)),
            Blocked(BlockReason.CHECKPOINT_EXPIRED, ORDERS, 10),
        ),
        (
            "beyond the target",
            GOOD._replace(target_log=LogRange(0, 470)),
            Blocked(BlockReason.CHECKPOINT_AHEAD, ORDERS, 10),
        ),
        (
            "the group was rewound behind its checkpoint",
            GOOD._replace(commit=950),
            Blocked(BlockReason.WOULD_SKIP_RECORDS, ORDERS, 30),
        ),
        (
            "no target topic",
            GOOD._replace(target_log=None, target_topic_exists=False),
            Blocked(BlockReason.TARGET_TOPIC_MISSING, ORDERS),
        ),
        (
            "no target partition",
            GOOD._replace(target_log=None),
            Blocked(BlockReason.TARGET_PARTITIONS_MISSING, ORDERS),
        ),
    ],
)
def test_partition_block_reasons(case: str, evidence: PartitionEvidence, expected: Blocked) -> None:
    found = evaluate_group(group(evidence), LIMITS, NOW)
    assert (found.ready, found.blocked) == (False, (expected,)), case


def test_group_with_unreadable_commits_is_blocked_and_keeps_its_values() -> None:
    found = evaluate_group(replace(group(GOOD), commits_readable=False), LIMITS, NOW)
    assert (found.ready, found.blocked) == (False, (Blocked(BlockReason.SOURCE_UNREADABLE),))
    assert found.redelivery_upper == 20


@pytest.mark.parametrize(
    ("case", "target_commit", "active", "age", "reason"),
    [
        ("synced", 480, False, 300.0, None),
        ("ahead on the target", 500, True, 300.0, None),
        ("behind", 470, False, 300.0, BlockReason.TARGET_OFFSET_BEHIND),
        ("absent", None, False, 300.0, BlockReason.TARGET_OFFSET_BEHIND),
        ("behind because it is active there", 470, True, 300.0, BlockReason.TARGET_GROUP_ACTIVE),
        ("not due yet", 470, False, 30.0, None),
    ],
)
def test_synced_group_offsets_block_reasons(
    case: str, target_commit: int | None, *, active: bool, age: float, reason: BlockReason | None
) -> None:
    part = GOOD._replace(
        checkpoint=NewestCheckpoint(990, 480, NOW - age), target_commit=target_commit
    )
    evidence = replace(group(part), syncs_group_offsets=True, target_group_active=active)
    found = evaluate_group(evidence, LIMITS, NOW)
    assert [blocked.reason for blocked in found.blocked] == ([reason] if reason else []), case
    unsynced = replace(evidence, syncs_group_offsets=False)
    assert evaluate_group(unsynced, LIMITS, NOW).ready


def test_idle_group_with_old_checkpoint_is_ready() -> None:
    idle = GOOD._replace(checkpoint=NewestCheckpoint(1000, 500, NOW - 30 * 86400))
    found = evaluate_group(group(idle), LIMITS, NOW)
    assert (found.ready, found.checkpoint_lag, found.redelivery_upper) == (True, 0, 0)


def test_empty_partition_needs_no_checkpoint() -> None:
    empty = GOOD._replace(commit=0, checkpoint=None, target_log=LogRange(0, 0), source_end=0)
    found = evaluate_group(group(GOOD, empty), LIMITS, NOW)
    assert (found.ready, found.redelivery_upper) == (True, 20)
    backlog = empty._replace(source_end=5)
    assert not evaluate_group(group(GOOD, backlog), LIMITS, NOW).ready


def test_reason_has_worst_partition_and_sums_omit_unknown_values() -> None:
    missing = GOOD._replace(source=PAYMENTS, checkpoint=None)
    bad = [
        GOOD._replace(
            source=TopicPartition("orders", number), target_log=LogRange(480 + removed, 700)
        )
        for number, removed in ((1, 3), (2, 9), (3, 1))
    ]
    found = evaluate_group(group(missing, *bad), LIMITS, NOW)
    assert found.blocked == (
        Blocked(BlockReason.NO_CHECKPOINT, PAYMENTS),
        Blocked(BlockReason.CHECKPOINT_EXPIRED, TopicPartition("orders", 2), 9),
    )
    assert found.checkpoint_lag == 30
    nothing = evaluate_group(group(missing), LIMITS, NOW)
    assert (nothing.checkpoint_lag, nothing.redelivery_lower) == (None, None)


@given(
    gaps=st.lists(st.booleans(), min_size=20, max_size=200),
    sync_every=st.integers(1, 30),
    data=st.data(),
)
def test_redelivery_bounds_enclose_true_redelivery(
    gaps: list[bool], sync_every: int, data: st.DataObject
) -> None:
    """A log with gaps (compaction, markers) is replicated densely, with the syncs of MM2."""
    offsets = [upstream for upstream, gap in enumerate(gaps) if not gap] or [0]
    syncs: list[tuple[int, int]] = []
    for downstream, upstream in enumerate(offsets):
        last = syncs[-1] if syncs else None
        if (
            last is None
            or downstream - last[1] >= sync_every
            or upstream - last[0] != downstream - last[1]
        ):
            syncs.append((upstream, downstream))
    commit = data.draw(st.integers(0, len(gaps)))
    at = data.draw(st.sampled_from(syncs))
    checkpoint = NewestCheckpoint(at[0], at[1], NOW)
    part = PartitionEvidence(
        source=ORDERS,
        commit=commit,
        checkpoint=checkpoint,
        target_log=LogRange(0, len(offsets)),
        offset_map=runs(*syncs),
    )
    found = evaluate_group(group(part), LIMITS, NOW)
    true = sum(upstream < commit for upstream in offsets[checkpoint.downstream :])
    assert found.redelivery_lower is not None
    assert found.redelivery_upper is not None
    assert found.redelivery_lower <= true <= found.redelivery_upper
