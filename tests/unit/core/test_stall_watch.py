from mm2slo_core.indicators.flow_state import StallWatch

STALL = 30.0


def watch(samples: list[tuple[float, int | None, int | None]], period: float = 0.0) -> list[str]:
    watched = StallWatch()
    return [watched.observe(at, lag, pos, STALL, period).value for at, lag, pos in samples]


def test_backlog_without_advance_is_stalled_after_stall_after() -> None:
    assert watch([(0, 5, 10), (29.9, 6, 10), (30, 6, 10), (60, 9, 10)]) == [
        "moving",
        "moving",
        "stalled",
        "stalled",
    ]


def test_advance_ends_stall_and_restarts_clock() -> None:
    assert watch([(0, 5, 10), (40, 5, 10), (45, 5, 11), (70, 5, 11), (75, 5, 11)]) == [
        "moving",
        "stalled",
        "moving",
        "moving",
        "stalled",
    ]


def test_first_record_after_idle_hours_is_not_stalled() -> None:
    assert watch([(0, 0, 10), (7200, 0, 10), (7205, 3, 10), (7235, 3, 10)]) == [
        "idle",
        "idle",
        "moving",
        "stalled",
    ]


def test_missing_samples_neither_start_nor_stop_stall_clock() -> None:
    assert watch([(0, 5, 10), (20, None, None), (40, 5, 10)]) == ["moving", "unknown", "stalled"]


def test_position_going_back_restarts_stall_clock() -> None:
    assert watch([(0, 5, 10), (25, 9, 6), (50, 9, 6), (55, 9, 6)]) == [
        "moving",
        "moving",
        "moving",
        "stalled",
    ]


def test_committed_position_allows_flush_interval() -> None:
    assert watch([(0, 5, 10), (89, 5, 10), (90, 5, 10)], period=60.0) == [
        "moving",
        "moving",
        "stalled",
    ]


def test_progress_at_is_last_advance_or_last_sample_without_backlog() -> None:
    watched = StallWatch()
    seen: list[float | None] = [watched.progress_at]
    for at, lag, position in ((0.0, 5, 10), (5.0, 4, 11), (10.0, 9, 8), (15.0, 0, 17)):
        watched.observe(at, lag, position, STALL)
        seen.append(watched.progress_at)
    assert seen == [None, None, 5.0, 5.0, 15.0]
