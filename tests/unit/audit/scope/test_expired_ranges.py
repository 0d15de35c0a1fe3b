"""Records that retention removed before they were copied, by offset and time."""

from mm2slo_audit.scope.arrival_polls import PartitionTimeline
from mm2slo_audit.scope.sync_history import (
    ExpiredRange,
    PartitionSnapshot,
    TimedSync,
    count_arrived_in,
    find_expired_ranges,
)
from mm2slo_core.audit.audit_scope import Window

PERIOD = 60.0


def present(
    at: float = 1000.0,
    *,
    start: int = 0,
    end: int = 1000,
    position: int | None = None,
    copied_to: int | None = None,
) -> PartitionSnapshot:
    return PartitionSnapshot(at, start, end, position, copied_to)


def ranges(
    syncs: list[TimedSync],
    now: PartitionSnapshot,
    timeline: PartitionTimeline | None = None,
    *,
    dense: bool = True,
    period: float = PERIOD,
) -> list[tuple[int, int]]:
    found = find_expired_ranges(syncs, timeline, now, dense=dense, position_period=period)
    return [(each.start, each.end) for each in found]


def test_expired_ranges_log_start_behind_position_is_empty() -> None:
    syncs = [TimedSync(0, 0, 1.0), TimedSync(100, 100, 2.0)]
    assert ranges(syncs, present(start=50, position=101)) == []


def test_expired_ranges_log_start_beyond_position() -> None:
    syncs = [TimedSync(0, 0, 1.0), TimedSync(49, 49, 2.0)]
    assert ranges(syncs, present(start=90, end=150, position=50)) == [(50, 90)]


def test_expired_ranges_stale_position_excludes_copied_records() -> None:
    syncs = [TimedSync(0, 0, 1.0), TimedSync(49, 49, 2.0)]
    now = present(start=90, end=150, position=50, copied_to=80)
    assert ranges(syncs, now) == [(80, 90)]
    assert ranges(syncs, present(start=90, end=150, position=50, copied_to=120)) == []


def test_expired_ranges_gap_between_syncs() -> None:
    # 0-49 were copied, then the log started at 90: source offset 90 is target offset 50.
    syncs = [TimedSync(0, 0, 1.0), TimedSync(90, 50, 5.0), TimedSync(140, 100, 6.0)]
    now = present(start=90, end=150, position=141)
    assert ranges(syncs, now) == [(50, 90)]
    found = find_expired_ranges(syncs, None, now, dense=True, position_period=PERIOD)
    assert found[0].next_copy == 50
    # The log start is still below: markers or compaction, the records still exist.
    assert ranges(syncs, present(start=60, end=150, position=141)) == []
    # Markers have target offsets of their own.
    assert ranges(syncs, now, dense=False) == []


def test_expired_ranges_gap_with_remaining_records_is_empty() -> None:
    syncs = [TimedSync(0, 0, 1.0), TimedSync(90, 50, 5.0)]
    now = present(start=95, end=150, position=150)
    timeline = PartitionTimeline()
    timeline.add_start(4.0, 0)
    timeline.add_start(500.0, 95)
    assert ranges(syncs, now, timeline) == []
    # Log starts are polled periodically: one seen a minute later existed before.
    soon = PartitionTimeline()
    soon.add_start(4.0, 0)
    soon.add_start(80.0, 90)
    assert ranges(syncs, now, soon) == [(50, 90)]


def test_expired_ranges_several_episodes() -> None:
    syncs = [
        TimedSync(0, 0, 1.0),
        TimedSync(90, 50, 5.0),
        TimedSync(300, 100, 9.0),
        TimedSync(310, 110, 10.0),
    ]
    # 90-139 were copied, then 300 on.
    now = present(start=400, end=500, position=311)
    assert ranges(syncs, now) == [(50, 90), (140, 300), (311, 400)]


def test_expired_ranges_replay_is_no_gap() -> None:
    syncs = [TimedSync(0, 0, 1.0), TimedSync(900, 900, 2.0), TimedSync(500, 901, 3.0)]
    assert ranges(syncs, present(start=950, end=1000, position=901, copied_to=960)) == []


def test_expired_ranges_stall_in_timeline() -> None:
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(10.0, 0)
    timeline.add_start(100.0, 90)
    timeline.add_position(300.0, 140)
    now = present(start=90, position=140)
    assert ranges([], now, timeline, dense=False) == [(50, 90)]


def test_expired_ranges_stale_position_that_advances_is_empty() -> None:
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(10.0, 0)
    timeline.add_start(100.0, 90)
    timeline.add_position(130.0, 140)
    now = present(start=90, position=140)
    assert ranges([], now, timeline, dense=False) == []
    # With exactly-once the position is exact.
    assert ranges([], now, timeline, dense=False, period=0.0) == [(50, 90)]


def test_expired_ranges_new_stall_uses_current_position() -> None:
    timeline = PartitionTimeline()
    timeline.add_position(10.0, 50)
    timeline.add_start(990.0, 90)
    assert ranges([], present(start=90, position=70), timeline, dense=False) == [(70, 90)]
    assert ranges([], present(start=90, position=95), timeline, dense=False) == []


def test_expired_ranges_overlapping_ranges_are_joined() -> None:
    syncs = [TimedSync(0, 0, 1.0), TimedSync(90, 50, 300.0)]
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


def test_count_arrived_in_counts_records_of_window() -> None:
    timeline = polled((50, None, 100.0), (70, 100.0, 110.0), (90, 110.0, 120.0))
    gone = ExpiredRange(50, 90, None)
    now = present(at=1000.0)
    assert count_arrived_in(gone, timeline, Window(0, 200_000), now) == (40, 0)
    assert count_arrived_in(gone, timeline, Window(121_000, 200_000), now) == (0, 0)
    assert count_arrived_in(gone, timeline, Window(0, 110_000), now) == (20, 0)
    # Records of one poll may have arrived on either side of the window's edge.
    assert count_arrived_in(gone, timeline, Window(115_000, 200_000), now) == (20, 0)


def test_count_arrived_in_without_earlier_poll_is_unknown() -> None:
    timeline = polled((70, None, 100.0), (90, 100.0, 110.0))
    gone = ExpiredRange(50, 90, None)
    assert count_arrived_in(gone, timeline, Window(0, 200_000), present()) == (20, 20)
    assert count_arrived_in(gone, PartitionTimeline(), Window(0, 200_000), present()) == (0, 40)


def test_count_arrived_in_after_last_poll_uses_current_time() -> None:
    timeline = polled((50, None, 100.0), (70, 100.0, 110.0))
    gone = ExpiredRange(60, 90, None)
    assert count_arrived_in(gone, timeline, Window(105_000, 200_000), present(at=150.0)) == (30, 0)
    assert count_arrived_in(gone, timeline, Window(160_000, 200_000), present(at=150.0)) == (0, 0)
