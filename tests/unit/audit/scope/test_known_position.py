"""The range of a partition that a flow is known to have copied."""

from mm2slo_audit.scope.sync_history import (
    Commit,
    SyncHistory,
    TimedSync,
    find_known_position,
    select_current_syncs,
)


def history(*points: tuple[int, int, float]) -> list[TimedSync]:
    held = SyncHistory()
    for point in points:
        held.add(TimedSync(*point))
    return list(held.points)


def test_known_position_is_commit_even_if_sync_passed_it() -> None:
    # A task failed on record 61; a later record of its batch was copied and synced.
    points = history((0, 0, 1.0), (100, 99, 2.0))
    failed = find_known_position(Commit(60, 1.5), points, source_end=200)
    assert (failed.next_offset, failed.reached, failed.known_from) == (61, 101, 0)
    resumed = find_known_position(Commit(150, 3.0), points, source_end=200)
    assert (resumed.next_offset, resumed.reached, resumed.known_from) == (151, 151, 0)
    assert not resumed.replaced


def test_known_position_without_commit_and_syncs_is_none() -> None:
    found = find_known_position(None, [], source_end=50)
    assert (found.next_offset, found.known_from) == (None, 0)


def test_known_from_is_oldest_sync_or_timeline_position() -> None:
    points = history((4000, 3900, 1.0), (5000, 4900, 2.0))
    assert find_known_position(None, points, source_end=9000).known_from == 4000
    # The timeline has an older position of the same log.
    assert (
        find_known_position(None, points, source_end=9000, oldest_position=1200).known_from == 1200
    )


def test_known_from_with_only_commit_is_next_offset() -> None:
    found = find_known_position(Commit(70, 1.0), [], source_end=100)
    assert (found.next_offset, found.known_from) == (71, 71)


def test_known_position_replay_keeps_log() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0), (500, 901, 3.0), (950, 1351, 4.0))
    found = find_known_position(Commit(499, 2.5), points, source_end=1000)
    assert (found.next_offset, found.reached, found.known_from) == (500, 951, 0)
    assert not found.replaced
    assert found.log_syncs[0].downstream == 0


def test_known_position_without_commit_reached_highest_sync() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0), (500, 901, 3.0))
    found = find_known_position(None, points, source_end=1000)
    assert (found.next_offset, found.reached) == (None, 901)


def test_known_position_step_back_from_beyond_end_is_new_log() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0), (10, 901, 3.0), (40, 931, 4.0))
    found = find_known_position(Commit(900, 2.5), points, source_end=50)
    assert (found.next_offset, found.reached, found.known_from) == (None, 41, 10)
    assert found.replaced
    assert found.log_syncs[0].downstream == 901


def test_known_position_syncs_beyond_end_are_ignored() -> None:
    points = history((0, 0, 1.0), (900, 900, 2.0))
    found = find_known_position(Commit(900, 2.5), points, source_end=50)
    assert (found.reached, found.log_syncs, found.replaced) == (None, (), True)


def test_known_position_recreated_topic_is_known_from_zero() -> None:
    # MM2 continued at its old position + 1: the first 901 records of the new log were skipped.
    points = history((0, 0, 1.0), (900, 950, 2.0), (901, 951, 12.0), (1500, 1550, 13.0))
    found = find_known_position(
        Commit(900, 9.0), points, source_end=2000, recreated_between=(10.0, 11.0)
    )
    assert (found.next_offset, found.reached, found.known_from) == (None, 1501, 0)
    assert found.replaced
    assert found.log_syncs[0].upstream > 900
    nothing_yet = find_known_position(
        Commit(900, 9.0), points[:2], source_end=2000, recreated_between=(10.0, 11.0)
    )
    assert (nothing_yet.reached, nothing_yet.log_syncs) == (None, ())


def test_select_current_syncs_step_back_between_polls_starts_new_log() -> None:
    points = history((0, 0, 1.0), (900, 900, 10.5), (0, 901, 10.8), (300, 1201, 12.0))
    epoch = select_current_syncs(points, 2000, (10.0, 11.0))
    assert [point.upstream for point in epoch] == [0, 300]


def test_sync_history_drops_syncs_inside_run() -> None:
    points = history(*((n * 101, n * 101, float(n)) for n in range(500)), (60_000, 50_600, 501.0))
    assert [(point.upstream, point.downstream) for point in points] == [
        (0, 0),
        (499 * 101, 499 * 101),
        (60_000, 50_600),
    ]


def test_sync_history_too_long_thins_out_older_half() -> None:
    crooked = ((n * 100, n * 99, float(n)) for n in range(30_000))
    points = history(*crooked)
    assert len(points) <= 20_000
    assert points[0] == (0, 0, 0.0)
    assert points[-1].upstream == 2_999_900
