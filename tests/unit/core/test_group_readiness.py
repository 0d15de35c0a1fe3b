from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offset_sync_slots import OffsetSyncStore

from mm2slo_core.indicators.group_readiness import (
    Blocked,
    BlockReason,
    GroupEvidence,
    LogRange,
    NewestCheckpoint,
    PartitionEvidence,
    ReadinessLimits,
    evaluate_group,
)
from mm2slo_core.offset_translation import SyncRuns, Untranslated
from mm2slo_core.records.mirror_records import OffsetSync
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
            Blocked(BlockReason.TARGET_OFFSET_EXPIRED, ORDERS, 10),
        ),
        (
            "beyond the target",
            GOOD._replace(target_log=LogRange(0, 470)),
            Blocked(BlockReason.TARGET_OFFSET_BEYOND_END, ORDERS, 10),
        ),
        (
            "the group was rewound behind its checkpoint",
            GOOD._replace(commit=950),
            Blocked(BlockReason.WOULD_SKIP_RECORDS, ORDERS, 30),
        ),
        (
            "no target topic",
            GOOD._replace(target_log=None, target_missing=BlockReason.TARGET_TOPIC_MISSING),
            Blocked(BlockReason.TARGET_TOPIC_MISSING, ORDERS),
        ),
        (
            "no leader of the target partition",
            GOOD._replace(target_log=None),
            Blocked(BlockReason.TARGET_UNREADABLE, ORDERS),
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


@pytest.mark.parametrize("syncs", [True, False])
@pytest.mark.parametrize(
    ("case", "commits", "redelivery", "skipped", "reason"),
    [
        ("synced up to the checkpoint", (1000, 480), (20, 20), (0, 0), None),
        ("a sync interval late", (1000, 430), (70, 70), (0, 0), None),
        ("too late", (1000, 390), (100, 110), (0, 0), BlockReason.REDELIVERY_OVER_LIMIT),
        ("at its position", (1000, 500), (0, 0), (0, 0), None),
        ("ahead", (1000, 510), (0, 0), (10, 10), BlockReason.WOULD_SKIP_RECORDS),
        ("reset on the source", (950, 480), (0, 0), (30, 30), BlockReason.WOULD_SKIP_RECORDS),
        ("reset before all syncs", (100, 480), (0, 0), (80, 480), BlockReason.WOULD_SKIP_RECORDS),
        ("perhaps ahead", (100, 400), (0, 0), (0, 400), BlockReason.MAY_SKIP_RECORDS),
        ("removed", (1000, -1), (None, None), (0, 0), BlockReason.TARGET_OFFSET_EXPIRED),
        ("beyond", (1000, 701), (None, None), (0, 0), BlockReason.TARGET_OFFSET_BEYOND_END),
    ],
)
def test_group_with_commit_on_target_resumes_there(
    case: str,
    commits: tuple[int, int],
    redelivery: tuple[int | None, int | None],
    skipped: tuple[int, int],
    reason: BlockReason | None,
    *,
    syncs: bool,
) -> None:
    """MirrorMaker 2 never moves a commit on the target back, whatever its checkpoint says."""
    commit, target_commit = commits
    checkpoint = NewestCheckpoint(990, 480, NOW) if commit >= 990 else NewestCheckpoint(0, 0, NOW)
    part = GOOD._replace(commit=commit, checkpoint=checkpoint, target_commit=target_commit)
    limits = replace(LIMITS, max_checkpoint_lag_records=10_000)
    found = evaluate_group(replace(group(part), syncs_group_offsets=syncs), limits, NOW)
    assert [each.reason for each in found.blocked] == ([reason] if reason else []), case
    assert (found.redelivery_lower, found.redelivery_upper) == redelivery
    assert found.skipped == skipped
    if any(skipped):
        assert found.blocked[0].records == (skipped[0] or skipped[1])


def test_synced_group_without_commit_on_target_is_not_ready() -> None:
    synced = replace(group(GOOD), syncs_group_offsets=True)
    found = evaluate_group(synced, LIMITS, NOW)
    assert found.blocked == (Blocked(BlockReason.NOT_SYNCED_YET, ORDERS),)
    assert (found.redelivery_lower, found.redelivery_upper) == (None, None)
    other = GOOD._replace(source=PAYMENTS, target_commit=480)
    found = evaluate_group(replace(synced, partitions=(GOOD, other)), LIMITS, NOW)
    assert (found.redelivery_lower, found.redelivery_upper) == (20, None)


def test_group_whose_commits_on_target_are_unreadable_is_not_ready() -> None:
    denied = replace(group(GOOD), target_commits_readable=False)
    found = evaluate_group(denied, LIMITS, NOW)
    assert {each.reason for each in found.blocked} == {BlockReason.TARGET_UNREADABLE}
    assert (found.redelivery_lower, found.redelivery_upper) == (None, None)
    known = replace(denied, partitions=(GOOD._replace(target_commit=480),))
    found = evaluate_group(known, LIMITS, NOW)
    assert found.blocked == (Blocked(BlockReason.TARGET_UNREADABLE),)
    assert found.redelivery_upper == 20


@pytest.mark.parametrize(
    ("case", "target_commit", "age", "redelivery", "blocked"),
    [
        ("at its position", 500, 30.0, (0, 20), None),
        ("behind its checkpoint", 470, 30.0, (20, 30), None),
        ("behind for long", 470, 300.0, (20, 30), 10),
        ("ahead of the group", 510, 30.0, (0, 20), 10),
        ("none here", None, 30.0, (None, None), 0),
    ],
)
def test_group_active_on_target_is_bounded_by_commit_and_checkpoint(
    case: str,
    target_commit: int | None,
    age: float,
    redelivery: tuple[int | None, int | None],
    blocked: int | None,
) -> None:
    part = GOOD._replace(
        checkpoint=NewestCheckpoint(990, 480, NOW - age), target_commit=target_commit
    )
    active = replace(group(part), syncs_group_offsets=True, target_group_active=True)
    found = evaluate_group(active, LIMITS, NOW)
    assert (found.redelivery_lower, found.redelivery_upper) == redelivery, case
    expected = () if blocked is None else (BlockReason.TARGET_GROUP_ACTIVE, ORDERS, blocked or None)
    assert found.blocked == ((Blocked(*expected),) if expected else ())
    assert found.skipped == (0, 0)


def test_commit_beyond_end_of_source_is_not_ready() -> None:
    found = evaluate_group(group(GOOD._replace(commit=1300, beyond_end=100)), LIMITS, NOW)
    reasons = {each.reason: each.records for each in found.blocked}
    assert reasons[BlockReason.SOURCE_COMMIT_BEYOND_END] == 100
    assert (found.redelivery_lower, found.redelivery_upper) == (None, None)


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
        Blocked(BlockReason.TARGET_OFFSET_EXPIRED, TopicPartition("orders", 2), 9),
    )
    assert found.checkpoint_lag == 30
    nothing = evaluate_group(group(missing), LIMITS, NOW)
    assert (nothing.checkpoint_lag, nothing.redelivery_lower) == (None, None)


@given(
    gaps=st.lists(st.booleans(), min_size=20, max_size=200),
    sync_every=st.integers(1, 30),
    syncs_groups=st.booleans(),
    data=st.data(),
)
def test_verdict_is_what_a_consumer_on_the_target_reads(
    gaps: list[bool], sync_every: int, syncs_groups: bool, data: st.DataObject
) -> None:
    """A log with gaps (compaction, markers) is replicated densely; the group moves at will.

    MirrorMaker 2 translates and syncs some of the commits; mm2slo knows its newest offset syncs.
    """
    offsets = [upstream for upstream, gap in enumerate(gaps) if not gap] or [0]
    syncs: list[tuple[int, int]] = []
    store = OffsetSyncStore()
    for downstream, upstream in enumerate(offsets):
        last = syncs[-1] if syncs else None
        if (
            last is None
            or downstream - last[1] >= sync_every
            or upstream - last[0] != downstream - last[1]
        ):
            syncs.append((upstream, downstream))
            store.add(OffsetSync(ORDERS, upstream, downstream))
    store.finish_initial_read()
    checkpoint: NewestCheckpoint | None = None
    target_commit: int | None = None
    commit = 0
    for _ in range(data.draw(st.integers(1, 6))):
        commit = data.draw(st.integers(0, len(gaps)))
        translated = store.translate_downstream(ORDERS, commit)
        if data.draw(st.booleans()) and isinstance(translated, int):
            checkpoint = NewestCheckpoint(commit, translated, NOW)
            if syncs_groups and data.draw(st.booleans()):
                target_commit = max(translated, target_commit or 0)
    start = data.draw(st.integers(0, len(offsets) // 2))
    part = PartitionEvidence(
        source=ORDERS,
        commit=commit,
        checkpoint=checkpoint,
        target_log=LogRange(start, len(offsets)),
        offset_map=runs(*syncs[data.draw(st.integers(0, len(syncs) - 1)) :]),
        target_commit=target_commit,
    )
    limits = ReadinessLimits(10**6, 10**6)
    found = evaluate_group(replace(group(part), syncs_group_offsets=syncs_groups), limits, NOW)
    resumed = target_commit
    if resumed is None and not syncs_groups and checkpoint is not None:
        resumed = checkpoint.downstream
    reasons = {each.reason for each in found.blocked}
    if resumed is None or resumed < start:
        assert found.redelivery_upper is None
        assert not found.ready
        assert reasons <= {
            BlockReason.NO_CHECKPOINT,
            BlockReason.NOT_SYNCED_YET,
            BlockReason.TARGET_OFFSET_EXPIRED,
        }
        return
    reread = sum(upstream < commit for upstream in offsets[resumed:])
    skipped = sum(upstream >= commit for upstream in offsets[start:resumed])
    assert found.redelivery_lower is not None
    assert found.redelivery_upper is not None
    assert found.redelivery_lower <= reread <= found.redelivery_upper
    assert found.skipped[0] <= skipped <= found.skipped[1]
    assert reasons <= {BlockReason.WOULD_SKIP_RECORDS, BlockReason.MAY_SKIP_RECORDS}
    if found.ready:
        assert skipped == 0
    if BlockReason.WOULD_SKIP_RECORDS in reasons:
        assert skipped > 0
