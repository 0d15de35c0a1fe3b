"""Counters of SLIs, and SLIs of time slices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offset_sync_slots import OffsetSyncStore

from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.indicators.sli_counters import (
    BAD,
    GOOD,
    UNKNOWN,
    CheckpointFreshness,
    DueSlices,
    FreshnessClass,
    GroupOffsets,
    Sli,
    SliceClock,
    SliCount,
    SliCounters,
    SliKey,
    data_freshness,
    heartbeat_availability,
    latency_tier,
)
from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.topology import TopicPartition

KEY = SliKey(Sli.LATENCY, "10s")
OTHER = SliKey(Sli.AVAILABILITY)


def test_declared_counters_start_at_zero() -> None:
    counters = SliCounters([KEY, OTHER])
    assert counters.snapshot() == {KEY: SliCount(0, 0, 0), OTHER: SliCount(0, 0, 0)}
    with pytest.raises(KeyError):
        counters.add(SliKey(Sli.ORDER), GOOD)


def test_add_sums_events() -> None:
    counters = SliCounters([KEY])
    for event in (GOOD, GOOD, BAD, UNKNOWN):
        counters.add(KEY, event)
    counters.add_all({KEY: SliCount(3, 4, 5)})
    assert counters[KEY] == SliCount(5, 7, 6)


@pytest.mark.parametrize("events", [SliCount(-1, 1, 0), SliCount(2, 1, 0), SliCount(0, 0, -1)])
def test_add_with_invalid_events_raises_value_error(events: SliCount) -> None:
    with pytest.raises(ValueError, match="expected 0 <= good <= total"):
        SliCounters([KEY]).add(KEY, events)


@pytest.mark.parametrize(
    ("seconds", "tier"), [(10.0, "10s"), (60.0, "60s"), (0.5, "0.5s"), (3600.0, "3600s")]
)
def test_latency_tier_label(seconds: float, tier: str) -> None:
    assert latency_tier(seconds) == tier


@pytest.mark.parametrize(
    ("case", "start", "looks", "expected"),
    [
        ("one a slice", 0.0, [15.0, 30.1], [DueSlices(1, 0), DueSlices(1, 0)]),
        ("not ended yet", 0.0, [14.9], [DueSlices(0, 0)]),
        ("two calls in one slice", 0.0, [15.0, 20.0], [DueSlices(1, 0), DueSlices(0, 0)]),
        ("late by two", 0.0, [46.0], [DueSlices(1, 2)]),
        ("the clock went back", 100.0, [50.0, 105.0], [DueSlices(0, 0), DueSlices(1, 0)]),
        ("started within a slice", 14.0, [16.0], [DueSlices(1, 0)]),
        ("down for long", 0.0, [15.0 * 101], [DueSlices(1, 60)]),
    ],
)
def test_slice_clock_due_slices(
    case: str, start: float, looks: list[float], expected: list[DueSlices]
) -> None:
    clock = SliceClock(15.0, start, limit=60)
    assert [clock.due(at) for at in looks] == expected, case


@given(looks=st.lists(st.floats(0.1, 500.0), min_size=1, max_size=50))
def test_slice_clock_counts_every_slice_once(looks: list[float]) -> None:
    clock, now = SliceClock(15.0, 0.0), 0.0
    total = 0
    for gap in looks:
        now += gap
        total += sum(clock.due(now))
    assert total == int(now // 15.0)


def test_slice_clock_with_non_positive_length_raises_value_error() -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        SliceClock(0.0, 0.0)


ONE = DueSlices(1, 0)


def test_data_freshness_counts_each_partition_per_slice() -> None:
    fast, slow = FreshnessClass("fast", 10.0), FreshnessClass("slow", 60.0)
    lags: dict[FreshnessClass, list[float | None]] = {
        fast: [0.0, 10.0, 10.1, None],
        slow: [59.0, 61.0],
    }
    assert data_freshness(ONE, lags) == {
        SliKey(Sli.DATA_FRESHNESS, "fast"): SliCount(2, 3, 1),
        SliKey(Sli.DATA_FRESHNESS, "slow"): SliCount(1, 2, 0),
    }


def test_data_freshness_of_missed_slice_is_unknown() -> None:
    default = FreshnessClass("default", 60.0)
    missed = data_freshness(DueSlices(1, 3), {default: [0.0, None, 99.0]})
    assert missed == {SliKey(Sli.DATA_FRESHNESS, "default"): SliCount(1, 2, 1 + 9)}
    nothing = data_freshness(DueSlices(0, 0), {default: [0.0]})
    assert nothing == {SliKey(Sli.DATA_FRESHNESS, "default"): SliCount(0, 0, 0)}


@pytest.mark.parametrize(
    ("case", "age", "target_readable", "source_unreachable_for", "expected"),
    [
        ("fresh", 1.0, True, 0.0, SliCount(1, 1, 0)),
        ("on the limit", 30.0, True, 0.0, SliCount(1, 1, 0)),
        ("too old", 31.0, True, 0.0, SliCount(0, 1, 0)),
        ("no heartbeat yet", None, True, 0.0, SliCount(0, 0, 1)),
        ("the target is unreadable", 99.0, False, 0.0, SliCount(0, 0, 1)),
        ("the source was down since the last heartbeat", 99.0, True, 80.0, SliCount(0, 0, 1)),
        ("no heartbeat long before the source went down", 99.0, True, 10.0, SliCount(0, 1, 0)),
    ],
)
def test_heartbeat_encoding_equals_kafka(
    case: str,
    age: float | None,
    target_readable: bool,
    source_unreachable_for: float,
    expected: SliCount,
) -> None:
    found = heartbeat_availability(
        ONE, age, target_readable=target_readable, source_unreachable_for=source_unreachable_for
    )
    assert found == expected, case


def test_heartbeat_availability_of_missed_slices_is_unknown() -> None:
    assert heartbeat_availability(DueSlices(1, 4), 1.0, target_readable=True) == (1, 1, 4)
    assert heartbeat_availability(DueSlices(0, 0), 1.0, target_readable=True) == (0, 0, 0)


COPIES = {"orders": "us.orders"}


def group(*positions: tuple[int, int | None], topic: str = "orders") -> GroupOffsets:
    """Commit and upstream offset of the newest checkpoint of each partition of a topic."""
    return GroupOffsets(
        {TopicPartition(topic, number): commit for number, (commit, _) in enumerate(positions)},
        {
            TopicPartition(COPIES.get(topic, topic), number): NewestCheckpoint(upstream, 0, 0.0)
            for number, (_, upstream) in enumerate(positions)
            if upstream is not None
        },
    )


def judge(*samples: tuple[float, int, int | None]) -> list[SliCount]:
    """One group with one partition, a checkpoint every 60 s, an offset sync every 100 records."""
    freshness = CheckpointFreshness(60.0, offset_lag_max=100)
    return [
        freshness.count(at, ONE, COPIES, {"billing": group((commit, upstream))}, {})
        for at, commit, upstream in samples
    ]


IDLE, FRESH, STALE = SliCount(0, 0, 0), SliCount(1, 1, 0), SliCount(0, 1, 0)


def test_checkpoint_freshness_ignores_idle_group() -> None:
    assert judge((0, 500, 500), (3600, 500, 500), (7200, 500, None)) == [IDLE] * 3


def test_checkpoint_freshness_is_good_if_covered_within_three_intervals() -> None:
    assert judge((0, 500, 500), (60, 2000, 500), (120, 3000, 2000), (300, 9000, 3000)) == [
        IDLE,
        FRESH,
        FRESH,
        FRESH,
    ]


def test_checkpoint_freshness_is_bad_three_intervals_after_last_checkpoint() -> None:
    assert judge((0, 500, 500), (60, 2000, 500), (240, 3000, 500), (241, 4000, 500)) == [
        IDLE,
        FRESH,
        FRESH,
        STALE,
    ]


def test_checkpoint_freshness_is_good_between_two_offset_syncs() -> None:
    assert judge((0, 500, 500), (60, 550, 500), (600, 600, 500)) == [IDLE, FRESH, FRESH]


def test_checkpoint_freshness_without_checkpoint_turns_bad() -> None:
    assert judge((0, 500, None), (60, 550, None), (200, 560, None)) == [IDLE, FRESH, STALE]


def test_checkpoint_freshness_after_group_reset_is_good() -> None:
    assert judge((0, 500, 500), (60, 9000, 500), (300, 400, 500)) == [IDLE, FRESH, FRESH]


def test_checkpoint_freshness_of_repeated_commits_stays_overdue() -> None:
    commits = [(0, 500, 500), (60, 2000, 500), (120, 2000, 500), (241, 3000, 500), (256, 3000, 500)]
    assert judge(*commits) == [IDLE, FRESH, IDLE, STALE, IDLE]


def test_checkpoint_freshness_after_late_checkpoint_is_good() -> None:
    assert judge((0, 500, 500), (60, 2000, 500), (300, 2000, 2000), (600, 9000, 2000)) == [
        IDLE,
        FRESH,
        IDLE,
        FRESH,
    ]


def test_checkpoint_freshness_without_samples_is_unknown_for_last_groups() -> None:
    freshness = CheckpointFreshness(60.0, offset_lag_max=0)
    for at, commit in ((0.0, 1), (60.0, 2)):
        groups = {"moving": group((commit, commit)), "idle": group((7, 7))}
        freshness.count(at, ONE, COPIES, groups, {})
    assert freshness.count(120.0, ONE, COPIES, None, {}) == SliCount(0, 0, 1)
    assert freshness.count(240.0, DueSlices(1, 2), COPIES, None, {}) == SliCount(0, 0, 3)


def test_checkpoint_freshness_counts_each_group_once() -> None:
    freshness = CheckpointFreshness(60.0, offset_lag_max=0)
    for at, commit in ((0.0, 1), (60.0, 2)):
        found = freshness.count(at, ONE, COPIES, {"g": group(*[(commit, commit)] * 3)}, {})
    assert found == FRESH


@pytest.mark.parametrize("production", [0, 50, 100])
def test_checkpoint_freshness_is_good_with_syncs_that_mirrormaker_keeps(production: int) -> None:
    """A group that is 20,000 records behind gets a checkpoint when it reaches the next sync."""
    freshness = CheckpointFreshness(60.0, offset_lag_max=100)
    store, partition = OffsetSyncStore(), TopicPartition("orders", 0)
    synced, translated, upstream, longest = 0, -1, 0, 0
    for minute in range(400):
        commit = 50 * minute
        while synced + 100 <= 20_000 + production * minute:
            synced += 100
            store.add(OffsetSync(partition, synced, synced))
        offset = store.translate_downstream(partition, commit)
        if isinstance(offset, int) and offset > translated:
            translated, upstream = offset, commit
        longest = max(longest, commit - upstream)
        syncs = {partition: NewestCheckpoint(synced, synced, 0.0)}
        groups = {"g": group((commit, upstream))}
        counted = freshness.count(60.0 * minute, ONE, COPIES, groups, syncs)
        assert counted in (FRESH, IDLE), minute
    assert longest > 5_000


def test_checkpoint_freshness_of_lagging_group_without_further_checkpoints_turns_bad() -> None:
    freshness = CheckpointFreshness(60.0, offset_lag_max=100)
    counted = []
    for minute in range(20):
        commit = 500 * minute
        groups = {"g": group((commit, 0))}
        syncs = {TopicPartition("orders", 0): NewestCheckpoint(commit + 1000, 0, 0.0)}
        counted.append(freshness.count(60.0 * minute, ONE, COPIES, groups, syncs))
    # Beyond 3,000 records, at minute 7, and three intervals later.
    assert counted == [IDLE, *[FRESH] * 10, *[STALE] * 9]


def test_checkpoint_freshness_ignores_topics_that_are_not_replicated() -> None:
    freshness = CheckpointFreshness(60.0, offset_lag_max=0)
    for at, commit in ((0.0, 1), (300.0, 2)):
        found = freshness.count(at, ONE, COPIES, {"g": group((commit, None), topic="other")}, {})
    assert found == IDLE


def test_checkpoint_freshness_of_topic_replicated_later_counts_from_then() -> None:
    freshness = CheckpointFreshness(60.0, offset_lag_max=0)
    rounds = [(0, 1, {}), (900, 1, COPIES), (1080, 2, COPIES), (1095, 3, COPIES)]
    counted = [
        freshness.count(at, ONE, copies, {"g": group((commit, None))}, {})
        for at, commit, copies in rounds
    ]
    assert counted == [IDLE, IDLE, FRESH, STALE]
