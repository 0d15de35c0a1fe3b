"""Records that retention took before they were copied, by offsets and by their time."""

from __future__ import annotations

from mm2slo_audit.scope.expired_ranges import (
    ExpiredRange,
    PartitionState,
    count_arrived_in,
    find_expired_ranges,
)
from mm2slo_audit.scope.partition_timeline import PartitionTimeline
from mm2slo_audit.scope.sync_history import SyncPoint
from mm2slo_core.audit.audit_scope import Window

PERIOD = 60.0


def present(
    at: float = 1000.0,
    *,
    start: int = 0,
    end: int = 1000,
    position: int | None = None,
    copied_to: int | None = None,
) -> PartitionState:
    return PartitionState(at, start, end, position, copied_to)


def ranges(
    syncs: list[SyncPoint],
    now: PartitionState,
    timeline: PartitionTimeline | None = None,
    *,
    dense: bool = True,
    period: float = PERIOD,
) -> list[tuple[int, int]]:
    found = find_expired_ranges(syncs, timeline, now, dense=dense, position_period=period)
    return [(each.start, each.end) for each in found]


def test_nothing_expires_while_the_log_start_is_behind_the_position() -> None:
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(100, 100, 2.0)]
    assert ranges(syncs, present(start=50, position=101)) == []


def test_the_log_start_beyond_the_position_now() -> None:
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(49, 49, 2.0)]
    assert ranges(syncs, present(start=90, end=150, position=50)) == [(50, 90)]


def test_what_the_target_already_holds_beyond_a_stale_position_did_not_expire() -> None:
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(49, 49, 2.0)]
    now = present(start=90, end=150, position=50, copied_to=80)
    assert ranges(syncs, now) == [(80, 90)]
    assert ranges(syncs, present(start=90, end=150, position=50, copied_to=120)) == []


def test_a_gap_between_syncs_that_the_log_start_has_passed() -> None:
    # Copied 0-49, then the log started at 90: record 90 is target record 50.
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(90, 50, 5.0), SyncPoint(140, 100, 6.0)]
    now = present(start=90, end=150, position=141)
    assert ranges(syncs, now) == [(50, 90)]
    found = find_expired_ranges(syncs, None, now, dense=True, position_period=PERIOD)
    assert found[0].next_copy == 50
    # The log start is still below: markers or compaction, and the records are there.
    assert ranges(syncs, present(start=60, end=150, position=141)) == []
    # Markers take target offsets of their own there.
    assert ranges(syncs, now, dense=False) == []


def test_a_gap_whose_records_were_still_there_long_after_it_is_none() -> None:
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(90, 50, 5.0)]
    now = present(start=95, end=150, position=150)
    timeline = PartitionTimeline()
    timeline.add_start(4.0, 0)
    timeline.add_start(500.0, 95)
    assert ranges(syncs, now, timeline) == []
    # Log starts are polled now and then: one that is told a minute later was there before.
    soon = PartitionTimeline()
    soon.add_start(4.0, 0)
    soon.add_start(80.0, 90)
    assert ranges(syncs, now, soon) == [(50, 90)]


def test_episodes_add_up() -> None:
    syncs = [
        SyncPoint(0, 0, 1.0),
        SyncPoint(90, 50, 5.0),
        SyncPoint(300, 100, 9.0),
        SyncPoint(310, 110, 10.0),
    ]
    # 90-139 were copied, then 300 on.
    now = present(start=400, end=500, position=311)
    assert ranges(syncs, now) == [(50, 90), (140, 300), (311, 400)]


def test_a_replay_is_no_gap() -> None:
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(900, 900, 2.0), SyncPoint(500, 901, 3.0)]
    assert ranges(syncs, present(start=950, end=1000, position=901, copied_to=960)) == []


def test_a_stall_below_the_log_start_in_the_timeline() -> None:
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(10.0, 0)
    timeline.add_start(100.0, 90)
    timeline.add_position(300.0, 140)
    now = present(start=90, position=140)
    assert ranges([], now, timeline, dense=False) == [(50, 90)]


def test_a_position_that_moves_on_within_its_period_was_only_stale() -> None:
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(10.0, 0)
    timeline.add_start(100.0, 90)
    timeline.add_position(130.0, 140)
    now = present(start=90, position=140)
    assert ranges([], now, timeline, dense=False) == []
    # With exactly-once the position is that of the records.
    assert ranges([], now, timeline, dense=False, period=0.0) == [(50, 90)]


def test_a_stall_that_just_began_is_measured_by_the_present_position() -> None:
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(990.0, 90)
    assert ranges([], present(start=90, position=70), timeline, dense=False) == [(70, 90)]
    assert ranges([], present(start=90, position=95), timeline, dense=False) == []


def test_one_range_told_twice_counts_once() -> None:
    syncs = [SyncPoint(0, 0, 1.0), SyncPoint(90, 50, 300.0)]
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(100.0, 80)
    timeline.add_start(200.0, 90)
    timeline.add_position(300.0, 91)
    now = present(start=90, end=150, position=91)
    found = find_expired_ranges(syncs, timeline, now, dense=True, position_period=PERIOD)
    assert found == (ExpiredRange(50, 90, 50),)


def polled(*polls: tuple[int, float | None, float]) -> PartitionTimeline:
    timeline = PartitionTimeline()
    for end, previous, answered in polls:
        timeline.add_poll(end, answered, answered, previous)
    return timeline


def test_expired_records_count_in_the_window_that_they_arrived_in() -> None:
    timeline = polled((50, None, 100.0), (70, 100.0, 110.0), (90, 110.0, 120.0))
    gone = ExpiredRange(50, 90, None)
    now = present(at=1000.0)
    assert count_arrived_in(gone, timeline, Window(0, 200_000), now) == (40, 0)
    assert count_arrived_in(gone, timeline, Window(121_000, 200_000), now) == (0, 0)
    assert count_arrived_in(gone, timeline, Window(0, 110_000), now) == (20, 0)
    # What one poll saw may have arrived on either side of the edge.
    assert count_arrived_in(gone, timeline, Window(115_000, 200_000), now) == (20, 0)


def test_what_arrived_before_the_first_poll_or_without_any_has_no_known_time() -> None:
    timeline = polled((70, None, 100.0), (90, 100.0, 110.0))
    gone = ExpiredRange(50, 90, None)
    assert count_arrived_in(gone, timeline, Window(0, 200_000), present()) == (20, 20)
    assert count_arrived_in(gone, PartitionTimeline(), Window(0, 200_000), present()) == (0, 40)


def test_what_came_after_the_last_poll_came_by_now() -> None:
    timeline = polled((50, None, 100.0), (70, 100.0, 110.0))
    gone = ExpiredRange(60, 90, None)
    assert count_arrived_in(gone, timeline, Window(105_000, 200_000), present(at=150.0)) == (30, 0)
    assert count_arrived_in(gone, timeline, Window(160_000, 200_000), present(at=150.0)) == (0, 0)
