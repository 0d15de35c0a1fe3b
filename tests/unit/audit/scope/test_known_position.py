"""Up to where, and from where on, a flow is known to have copied a partition."""

from __future__ import annotations

from mm2slo_audit.scope.known_position import Commit, known_position
from mm2slo_audit.scope.sync_history import SyncHistory, SyncPoint, select_current_syncs


def history(*points: tuple[int, int, float]) -> list[SyncPoint]:
    held = SyncHistory()
    for point in points:
        held.add(SyncPoint(*point))
    return list(held.points)


def test_the_position_follows_the_larger_of_commit_and_newest_sync() -> None:
    points = history((0, 0, 1.0), (100, 100, 2.0))
    behind = known_position(Commit(60, 1.5), points, source_end=200)
    ahead = known_position(Commit(150, 3.0), points, source_end=200)
    assert (behind.next_offset, behind.known_from) == (101, 0)
    assert (ahead.next_offset, ahead.known_from) == (151, 0)
    assert not ahead.replaced


def test_a_flow_that_left_no_trace_has_no_position() -> None:
    found = known_position(None, [], source_end=50)
    assert (found.next_offset, found.known_from) == (None, 0)


def test_what_precedes_the_oldest_surviving_sync_is_not_known() -> None:
    points = history((4000, 3900, 1.0), (5000, 4900, 2.0))
    assert known_position(None, points, source_end=9000).known_from == 4000
    # The timeline remembers an older position of the same log.
    assert known_position(None, points, source_end=9000, remembered=1200).known_from == 1200


def test_a_commit_alone_says_nothing_of_what_was_before_it() -> None:
    found = known_position(Commit(70, 1.0), [], source_end=100)
    assert (found.next_offset, found.known_from) == (71, 71)


def test_a_replay_after_a_crash_begins_no_epoch() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0), (500, 901, 3.0), (950, 1351, 4.0))
    found = known_position(Commit(499, 2.5), points, source_end=1000)
    assert (found.next_offset, found.known_from, found.replaced) == (951, 0, False)
    assert found.epoch[0].downstream == 0


def test_a_crash_keeps_what_was_copied_before_the_step_back() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0), (500, 901, 3.0))
    assert known_position(None, points, source_end=1000).next_offset == 901


def test_a_step_back_from_beyond_the_end_is_another_log() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0), (10, 901, 3.0), (40, 931, 4.0))
    found = known_position(Commit(900, 2.5), points, source_end=50)
    assert (found.next_offset, found.known_from, found.replaced) == (41, 10, True)
    assert found.epoch[0].downstream == 901


def test_syncs_beyond_the_end_are_of_an_earlier_log_only() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0))
    found = known_position(Commit(900, 2.5), points, source_end=50)
    assert (found.next_offset, found.epoch, found.replaced) == (None, (), True)


def test_a_new_topic_id_begins_an_epoch_that_is_followed_from_its_first_record() -> None:
    # MM2 went on at its old position + 1: the new log's first 901 records were skipped, for good.
    points = history((0, 0, 1.0), (900, 950, 2.0), (901, 951, 12.0), (1500, 1550, 13.0))
    found = known_position(Commit(900, 9.0), points, source_end=2000, born=(10.0, 11.0))
    assert (found.next_offset, found.known_from, found.replaced) == (1501, 0, True)
    assert found.epoch[0].upstream > 900
    nothing_yet = known_position(Commit(900, 9.0), points[:2], source_end=2000, born=(10.0, 11.0))
    assert (nothing_yet.next_offset, nothing_yet.epoch) == (None, ())


def test_between_two_polls_a_step_back_tells_where_the_new_log_begins() -> None:
    points = history((0, 0, 1.0), (900, 900, 10.5), (0, 901, 10.8), (300, 1201, 12.0))
    epoch = select_current_syncs(points, 2000, (10.0, 11.0))
    assert [point.upstream for point in epoch] == [0, 300]


def test_syncs_inside_a_straight_run_are_not_kept() -> None:
    points = history(*((n * 101, n * 101, float(n)) for n in range(500)), (60_000, 50_600, 501.0))
    assert [(point.upstream, point.downstream) for point in points] == [
        (0, 0),
        (499 * 101, 499 * 101),
        (60_000, 50_600),
    ]


def test_a_long_crooked_history_keeps_its_oldest_and_its_newer_half() -> None:
    crooked = ((n * 100, n * 99, float(n)) for n in range(30_000))
    points = history(*crooked)
    assert len(points) <= 20_000
    assert points[0] == (0, 0, 0.0)
    assert points[-1].upstream == 2_999_900
