"""Positions and offset translation, with invariants by name; tests/spec compares with Kafka."""

import random
import sys
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offset_sync_slots import SyncPoint

from mm2slo_core.offset_translation import (
    Bounds,
    Head,
    Position,
    PositionQuality,
    SyncRuns,
    TransactionalCommits,
    estimate_position,
)

Q = PositionQuality


@pytest.mark.parametrize(
    ("case", "committed", "sync", "target_end", "high_watermark", "expected"),
    [
        ("caught up", 480, (500, 300), 351, 551, Position(551, Q.LIVE)),
        ("20 behind", 480, (500, 300), 351, 571, Position(551, Q.LIVE)),
        ("nothing after the sync", 480, (500, 300), 301, 900, Position(501, Q.LIVE)),
        ("no commit yet", None, (0, 0), 10, 12, Position(10, Q.LIVE)),
        ("no sync", 480, None, 351, 551, Position(481, Q.COMMITTED)),
        ("commit ahead of target", 560, (500, 300), 351, 900, Position(561, Q.COMMITTED)),
        ("nothing known", None, None, 351, 551, Position(7, Q.NOT_STARTED)),
        ("nothing known, target down", None, None, None, 551, Position(7, Q.NOT_STARTED)),
        ("target down", 480, (500, 300), None, 551, Position(501, Q.STALE)),
        ("target down, commit ahead", 520, (500, 300), None, 551, Position(521, Q.STALE)),
        ("target down, no sync", 480, None, None, 551, Position(481, Q.STALE)),
        ("one record too many", 480, (500, 300), 352, 551, Position(501, Q.FOREIGN_WRITER)),
        ("target emptied", 480, (500, 300), 0, 551, Position(501, Q.TARGET_RESET)),
        ("target lost its newest record", 480, (500, 300), 300, 551, Position(501, Q.TARGET_RESET)),
        ("source lost the commit", 480, None, 351, 480, Position(7, Q.SOURCE_RESET)),
        ("source lost the synced record", 480, (500, 300), 351, 500, Position(7, Q.SOURCE_RESET)),
        ("source ends right after", 480, (500, 300), 301, 501, Position(501, Q.LIVE)),
    ],
)  # fmt: skip
def test_position_quality_per_situation(
    case: str,
    *,
    committed: int | None,
    sync: tuple[int, int] | None,
    target_end: int | None,
    high_watermark: int,
    expected: Position,
) -> None:
    position = estimate_position(
        committed=committed,
        sync=None if sync is None else SyncPoint(*sync),
        target_end=target_end,
        high_watermark=high_watermark,
        log_start=7,
    )
    assert position == expected, case


@pytest.mark.parametrize(
    ("shared_target", "exactly_once", "quality"),
    [(True, False, Q.SHARED_TARGET), (False, True, Q.EXACTLY_ONCE), (True, True, Q.SHARED_TARGET)],
)
def test_position_without_usable_target_offsets_is_commit(
    *, shared_target: bool, exactly_once: bool, quality: PositionQuality
) -> None:
    position = estimate_position(
        committed=520,
        sync=SyncPoint(500, 300),
        target_end=400,
        high_watermark=600,
        log_start=0,
        shared_target=shared_target,
        exactly_once=exactly_once,
    )
    assert position == Position(521, quality)


def test_position_of_stopped_flow_with_foreign_writer_is_not_caught_up() -> None:
    position = estimate_position(
        committed=499, sync=SyncPoint(499, 499), target_end=2000, high_watermark=900, log_start=0
    )
    assert position == Position(500, Q.FOREIGN_WRITER)


offsets = st.integers(0, 2000)


@given(
    committed=st.none() | offsets,
    sync=st.none() | st.builds(SyncPoint, offsets, offsets),
    target_end=st.none() | offsets,
    high_watermark=offsets,
    log_start=offsets,
)
def test_position_keeps_its_invariants(
    committed: int | None,
    sync: SyncPoint | None,
    target_end: int | None,
    high_watermark: int,
    log_start: int,
) -> None:
    position = estimate_position(
        committed=committed,
        sync=sync,
        target_end=target_end,
        high_watermark=high_watermark,
        log_start=log_start,
    )
    if position.quality in (Q.NOT_STARTED, Q.SOURCE_RESET):
        assert position.next_offset == log_start, "D"
        return
    assert committed is None or position.next_offset > committed, "A"
    assert sync is None or position.next_offset > sync.upstream, "A"
    assert position.next_offset <= high_watermark, "B"
    if position.quality is not Q.LIVE:
        known = (committed, None if sync is None else sync.upstream)
        assert position.next_offset - 1 in known, "C"


MARKER = -1


@dataclass
class Replication:
    """A target partition as MirrorMaker 2 writes it: which source offset is at each offset."""

    lag_max: int
    log: list[int] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)
    _previous: int | None = None

    def restart(self) -> None:
        self._previous = None

    def copy(self, upstream: int) -> None:
        downstream = len(self.log)
        self.log.append(upstream)
        first_or_gap = self._previous is None or upstream != self._previous + 1
        if first_or_gap or downstream - (self.syncs[-1][1] + 1) >= self.lag_max:
            self.syncs.append((upstream, downstream))
        self._previous = upstream

    def position(self, upstream: int) -> int:
        """Find the first record at or after *upstream* in the newest epoch that covers it."""
        starts = [at for at in range(1, len(self.log)) if self.log[at] <= self.log[at - 1]]
        covering = [start for start in (0, *starts) if self.log[start] <= upstream]
        start = covering[-1] if covering else 0
        ends = [at for at in starts if at > start] or [len(self.log)]
        return next((at for at in range(start, ends[0]) if self.log[at] >= upstream), ends[0])

    def redelivery(self, upstream: int, downstream: int) -> int:
        return sum(at < upstream for at in self.log[downstream:] if at != MARKER)


def runs_of(replication: Replication, *, dense: bool = True, max_points: int = 256) -> SyncRuns:
    runs = SyncRuns(dense=dense, max_points=max_points)
    for sync in replication.syncs:
        runs.add(*sync)
    return runs


def simulate(
    seed: int, *, gaps: bool = False, crashes: bool = False, markers: bool = False
) -> Replication:
    dice = random.Random(seed)
    replication = Replication(lag_max=dice.choice([0, 3, 10, 100]))
    source = [dice.randrange(50)]
    for _ in range(dice.randint(1, 600)):
        source.append(source[-1] + (dice.randint(2, 30) if gaps and dice.random() < 0.05 else 1))
    at = committed = 0
    while at < len(source):
        replication.copy(source[at])
        at += 1
        if dice.random() < 0.02:
            committed = at
        if markers and dice.random() < 0.1:
            replication.log.append(MARKER)
        if crashes and dice.random() < 0.005:
            replication.restart()
            # The end is always reached: in the middle of a replay there is no place to fail to.
            at = committed
    return replication


def holds(bounds: Bounds | None, truth: int) -> bool:
    return (
        bounds is not None
        and bounds.lower <= truth
        and (bounds.upper is None or truth <= bounds.upper)
    )


@pytest.mark.parametrize("max_points", [8, 256])
@pytest.mark.parametrize("crashes", [False, True])
def test_invariant_a_points_ascend_within_epochs(max_points: int, *, crashes: bool) -> None:
    for seed in range(12):
        replication = simulate(seed, gaps=True, crashes=crashes)
        points = list(runs_of(replication, max_points=max_points).points())
        assert all(near[1] < far[1] for near, far in pairwise(points)), f"A: {points}"
        steps_back = sum(far[0] <= near[0] for near, far in pairwise(points))
        syncs_back = sum(far[0] <= near[0] for near, far in pairwise(replication.syncs))
        assert steps_back <= syncs_back, f"A: {points}"


@pytest.mark.parametrize("max_points", [8, 256])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("crashes", [False, True])
def test_invariants_b_and_c_target_bounds_enclose_true_offset(
    max_points: int, *, gaps: bool, crashes: bool
) -> None:
    """With 8 points most syncs are left out: C."""
    for seed in range(12):
        replication = simulate(seed, gaps=gaps, crashes=crashes)
        runs = runs_of(replication, max_points=max_points)
        head = Head(replication.log[-1] + 1, len(replication.log))
        assert len(runs) <= max_points
        for downstream, upstream in enumerate(replication.log):
            origin = runs.upstream_bounds(downstream)
            assert origin is None or holds(origin, upstream), (seed, downstream)
        for upstream in range(replication.log[-1] + 3):
            truth = replication.position(upstream)
            assert holds(runs.target_bounds(upstream, head), truth), (seed, upstream)
            assert holds(runs.target_bounds(upstream), truth), (seed, upstream)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("max_points", [8, 256])
def test_invariants_b_and_c_failover_encloses_true_redelivery(
    max_points: int, *, gaps: bool, crashes: bool
) -> None:
    for seed in range(12):
        replication = simulate(seed, gaps=gaps, crashes=crashes)
        runs = runs_of(replication, max_points=max_points)
        head = Head(replication.log[-1] + 1, len(replication.log))
        for upstream in range(0, replication.log[-1] + 3, 7):
            for downstream in range(0, len(replication.log) + 2, 11):
                truth = replication.redelivery(upstream, downstream)
                found = runs.failover(upstream, downstream, head)
                assert found is not None
                assert holds(found.redelivery, truth), (seed, upstream, downstream)
                assert found.resume == runs.target_bounds(upstream, head), (seed, upstream)


@pytest.mark.parametrize("dense", [False, True])
def test_failover_encloses_truth_where_others_have_written_since_newest_sync(
    *, dense: bool
) -> None:
    for seed in range(12):
        dice, replication = random.Random(seed), simulate(seed, gaps=True, crashes=True)
        runs = runs_of(replication, dense=dense)
        source_end = replication.log[-1] + 1 + dice.choice([0, 5])
        upstream, downstream = replication.syncs[-1]
        for _ in range(dice.choice([1, 20, 1_000])):
            replication.log.insert(dice.randint(downstream + 1, len(replication.log)), MARKER)
        head = Head(source_end, len(replication.log), is_exact=False)
        for commit in range(upstream, source_end + 1):
            for start in range(0, len(replication.log) + 1, 7):
                found = runs.failover(commit, start, head)
                assert found is not None
                copies = range(downstream, len(replication.log))
                needed = [at for at in copies if replication.log[at] >= commit]
                assert holds(found.resume, min(needed, default=len(replication.log)))
                truth = replication.redelivery(commit, start)
                assert holds(found.redelivery, truth), (seed, commit, start)


def test_target_bounds_with_markers_are_bounded_by_order() -> None:
    for seed in range(12):
        replication = simulate(seed, gaps=True, markers=True)
        runs = runs_of(replication, dense=False)
        for upstream in range(replication.log[-1] + 3 if replication.log[-1] != MARKER else 20):
            needed = [at for at, up in enumerate(replication.log) if up >= upstream]
            truth = needed[0] if needed else len(replication.log)
            assert holds(runs.target_bounds(upstream), truth), (seed, upstream)


def test_target_bounds_of_contiguous_run_are_exact() -> None:
    runs = SyncRuns()
    runs.add(100, 40)
    runs.add(200, 140)
    assert runs.target_bounds(150) == Bounds(90, 90)
    assert runs.target_bounds(150) == (90, 90)
    assert runs.upstream_bounds(90) == Bounds(150, 150)


def test_target_bounds_with_source_gap_have_lower_and_upper_bound() -> None:
    runs = SyncRuns()
    runs.add(100, 40)
    runs.add(200, 100)  # 40 of the 100 source offsets hold no record
    assert runs.target_bounds(150) == Bounds(50, 90)
    assert runs.target_bounds(110) == Bounds(41, 50)
    assert runs.target_bounds(195) == Bounds(95, 100)
    assert runs.upstream_bounds(60) == Bounds(120, 160)


def test_target_bounds_with_surplus_target_offsets_are_bounded_by_order() -> None:
    runs = SyncRuns()
    runs.add(100, 40)
    runs.add(110, 90)
    assert runs.target_bounds(105) == Bounds(41, 90)
    assert runs.upstream_bounds(60) == Bounds(100, None)
    assert runs.failover(108, 40) == (Bounds(41, 90), Bounds(1, 50))


def test_target_bounds_beyond_newest_sync_use_head() -> None:
    runs = SyncRuns()
    runs.add(100, 40)
    assert runs.target_bounds(150) == Bounds(41, 90)
    assert runs.target_bounds(150, Head(160, 100)) == Bounds(90, 90)
    assert runs.target_bounds(150, Head(160, 80)) == Bounds(70, 80)
    assert runs.target_bounds(180, Head(160, 100)) == Bounds(100, 100)
    assert runs.target_bounds(150, Head(160, 30)) == Bounds(41, 90)
    assert SyncRuns().target_bounds(150) is None
    assert SyncRuns().failover(150, 0) is None
    order_only = SyncRuns(dense=False)
    order_only.add(100, 40)
    assert order_only.target_bounds(150) == Bounds(41, None)
    assert order_only.failover(150, 41) == (Bounds(41, None), Bounds(0, 49))


def test_target_bounds_before_oldest_sync_use_that_sync() -> None:
    runs = SyncRuns()
    runs.add(100, 40)
    assert runs.target_bounds(99) == Bounds(0, 40)
    assert runs.upstream_bounds(39) is None
    assert runs.failover(150, 30, Head(160, 100)) == (Bounds(90, 90), Bounds(50, 60))
    assert runs.failover(99, 30) == (Bounds(0, 40), Bounds(0, 10))


def test_failover_counts_replayed_records_twice() -> None:
    runs = SyncRuns()
    runs.add(0, 0)
    runs.add(200, 200)
    runs.add(50, 250)  # after a crash: 50..249 are copied again to 250..449
    runs.add(250, 450)
    head = Head(300, 500)
    assert runs.target_bounds(200, head) == Bounds(400, 400)
    assert runs.target_bounds(20, head) == Bounds(20, 20)
    # From 200 on: 200..249 are new to the group, 250..399 hold 50..199 again.
    assert runs.failover(200, 200, head) == (Bounds(400, 400), Bounds(150, 150))
    assert runs.failover(200, 400, head) == (Bounds(400, 400), Bounds(0, 0))
    assert runs.failover(200, 390, head) == (Bounds(400, 400), Bounds(10, 10))
    assert runs.failover(200, 100, head) == (Bounds(400, 400), Bounds(250, 250))


def test_add_with_lower_downstream_offset_drops_all_points() -> None:
    runs = SyncRuns()
    runs.add(0, 0)
    runs.add(500, 500)
    runs.add(501, 0)
    assert list(runs.points()) == [(501, 0)]
    runs.add(501, 0)
    assert list(runs.points()) == [(501, 0)]


def test_million_syncs_of_one_run_are_two_points() -> None:
    runs = SyncRuns()
    for at in range(0, 1_000_000, 100):
        runs.add(at, at + 5)
    assert list(runs.points()) == [(0, 5), (999_900, 999_905)]


def test_partition_with_few_syncs_uses_less_than_700_bytes() -> None:
    runs = SyncRuns()
    for at in range(4):
        runs.add(at * 100, at * 90)
    parts = [getattr(runs, name) for name in SyncRuns.__slots__]
    arrays = sum(sys.getsizeof(part) for part in parts if hasattr(part, "buffer_info"))
    assert sys.getsizeof(runs) + arrays < 700


def test_reaches_ignores_syncs_before_step_back() -> None:
    """As Kafka's OffsetSyncStore, which drops them; a hidden step back is none to it."""
    known = SyncRuns()
    assert not known.reaches(100)
    known.add(100, 10)
    known.add(300, 900)  # records were copied twice in between, which the syncs do not show
    assert [known.reaches(offset) for offset in (99, 100, 299)] == [False, True, True]
    known.add(200, 1000)
    assert [known.reaches(offset) for offset in (100, 199, 200)] == [False, False, True]


@pytest.mark.parametrize("seed", range(40))
def test_assume_sparse_gives_the_bounds_of_a_map_that_never_was_dense(seed: int) -> None:
    replication = simulate(seed, crashes=True, markers=True)
    runs = runs_of(replication, dense=True)
    runs.assume_sparse()
    expected = runs_of(replication, dense=False)
    for upstream in range(0, max(replication.log), 7):
        assert runs.target_bounds(upstream) == expected.target_bounds(upstream), upstream


def commits(*written: tuple[int, str]) -> TransactionalCommits:
    found = TransactionalCommits()
    for offset, committed in written:
        add(found, 0, offset, committed)
    return found


def add(found: TransactionalCommits, partition: int, offset: int, committed: str = "") -> None:
    """Add a commit, or a record of another connector."""
    found.add_record(partition, offset)
    if committed:
        found.add_commit(partition, float(offset), committed)


def test_marker_after_newest_commit_shows_transactions() -> None:
    found = commits((0, "orders-0"), (1, "orders-1"))
    found.read_up_to({0: 2})
    assert found.found is None  # the marker may follow
    found.read_up_to({0: 3})
    assert found.found is True


def test_commits_of_one_partition_without_marker_between_show_none() -> None:
    found = commits((7, "orders-0"), (8, "orders-1"), (9, "orders-0"))
    assert found.found is False


def test_gaps_of_compaction_between_commits_show_nothing() -> None:
    found = commits((7, "orders-0"), (9, "orders-1"), (42, "orders-0"))
    found.read_up_to({0: 43})
    assert found.found is None


def test_marker_in_another_partition_than_the_newest_commit_is_old() -> None:
    """Exactly-once support was switched off: partitions that no longer move keep their markers."""
    found = commits((0, "idle-0"))
    add(found, 1, 10, "orders-0")
    found.read_up_to({0: 2, 1: 11})
    assert found.found is None


def test_transactions_are_found_again_after_a_worker_without_them() -> None:
    found = commits((0, "orders-0"), (1, "orders-0"))
    assert found.found is False
    add(found, 0, 2, "orders-0")
    found.read_up_to({0: 4})
    assert found.found is True


def test_records_of_other_connectors_are_no_markers() -> None:
    """Exactly-once support was switched off: the marker at offset 2 is an old one."""
    commit, other = "orders-0", ""
    found, seen = TransactionalCommits(), list[bool | None]()
    for offset, committed in [(0, commit), (1, other), (3, commit), (4, other), (5, commit)]:
        add(found, 0, offset, committed)
        seen.append(found.found)
        found.read_up_to({0: 3 if offset == 1 else offset + 1})
        seen.append(found.found)
    assert seen == [None, None, None, True, True, True, True, True, False, False]


def test_clear_forgets_what_was_found() -> None:
    found = commits((0, "orders-0"))
    found.read_up_to({0: 2})
    found.clear()
    found.read_up_to({0: 2})
    assert found.found is None
