from __future__ import annotations

from mm2slo_core.stall_watch import StallWatch

STALL = 30.0


def watch(samples: list[tuple[float, int | None, int | None]], period: float = 0.0) -> list[str]:
    watched = StallWatch()
    return [watched.observe(at, lag, pos, STALL, period).value for at, lag, pos in samples]


def test_a_backlog_that_stands_still_stalls_after_the_patience() -> None:
    assert watch([(0, 5, 10), (29.9, 6, 10), (30, 6, 10), (60, 9, 10)]) == [
        "moving",
        "moving",
        "stalled",
        "stalled",
    ]


def test_a_position_that_moves_ends_a_stall_and_starts_its_clock_again() -> None:
    assert watch([(0, 5, 10), (40, 5, 10), (45, 5, 11), (70, 5, 11), (75, 5, 11)]) == [
        "moving",
        "stalled",
        "moving",
        "moving",
        "stalled",
    ]


def test_an_idle_partition_may_rest_for_hours_and_its_first_new_record_is_no_stall() -> None:
    assert watch([(0, 0, 10), (7200, 0, 10), (7205, 3, 10), (7235, 3, 10)]) == [
        "idle",
        "idle",
        "moving",
        "stalled",
    ]


def test_blindness_neither_starts_nor_stops_the_clock() -> None:
    assert watch([(0, 5, 10), (20, None, None), (40, 5, 10)]) == ["moving", "unknown", "stalled"]


def test_a_step_back_is_activity() -> None:
    assert watch([(0, 5, 10), (25, 9, 6), (50, 9, 6), (55, 9, 6)]) == [
        "moving",
        "moving",
        "moving",
        "stalled",
    ]


def test_a_committed_position_is_given_its_flush_interval() -> None:
    assert watch([(0, 5, 10), (89, 5, 10), (90, 5, 10)], period=60.0) == [
        "moving",
        "moving",
        "stalled",
    ]


def test_progress_is_the_last_advance_or_the_last_moment_without_a_backlog() -> None:
    watched = StallWatch()
    seen: list[float | None] = [watched.progress_at]
    for at, lag, position in ((0.0, 5, 10), (5.0, 4, 11), (10.0, 9, 8), (15.0, 0, 17)):
        watched.observe(at, lag, position, STALL)
        seen.append(watched.progress_at)
    assert seen == [None, None, 5.0, 5.0, 15.0]
