"""Lag, arrival times and retention headroom."""

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.replication_lag import (
    ArrivalHistory,
    Bracket,
    Headroom,
    LagOrigin,
    RecordLag,
    RetentionLimit,
    RetentionPolicy,
    SmoothedRate,
    catch_up_seconds,
    headroom,
    open_transaction_records,
    record_lag,
    time_lag,
)
from mm2slo_core.records.timeline_record import PollTimes

OFFSETS = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("case", "high", "position", "start", "expected"),
    [
        ("a backlog is the distance to the end", 100, 40, 0, RecordLag(60)),
        ("caught up is zero", 100, 100, 0, RecordLag(0)),
        ("an empty partition is caught up", 0, 0, 0, RecordLag(0)),
        ("what retention took is loss, not lag", 100, 40, 70, RecordLag(30, expired=30)),
        ("all is gone", 100, 40, 100, RecordLag(0, expired=60)),
        ("the log start is not needed", 100, 40, None, RecordLag(60)),
        (
            "a position beyond the end is not clamped to zero",
            100,
            101,
            0,
            RecordLag(None),
        ),
    ],
)
def test_record_lag(
    case: str, high: int, position: int, start: int | None, expected: RecordLag
) -> None:
    assert record_lag(high, position, start) == expected, case


@given(high=OFFSETS, position=OFFSETS, start=OFFSETS)
def test_record_lag_and_expired_records_add_up(high: int, position: int, start: int) -> None:
    lag = record_lag(high, position, min(start, high))
    if lag.records is None:
        assert position > high
    else:
        assert lag.records + lag.expired == high - position
        assert lag.records >= 0


def test_open_transaction_records_are_beyond_last_stable_offset() -> None:
    assert open_transaction_records(120, 100) == 20
    assert open_transaction_records(100, 120) is None


def test_time_lag_prefers_history() -> None:
    lag = time_lag(1000.0, RecordLag(5), Bracket(900.0, 905.0, 903.0), record_timestamp=100.0)
    assert (lag.seconds, lag.origin) == (97.0, LagOrigin.HISTORY)


def test_time_lag_without_history_uses_record_timestamp() -> None:
    lag = time_lag(1000.0, RecordLag(5), None, record_timestamp=100.0)
    assert (lag.seconds, lag.origin) == (900.0, LagOrigin.RECORD)


def test_time_lag_without_backlog_is_zero() -> None:
    lag = time_lag(1000.0, RecordLag(0), None)
    assert (lag.seconds, lag.origin) == (0.0, LagOrigin.NO_BACKLOG)


def test_time_lag_of_future_timestamp_counts_from_when_the_record_was_seen() -> None:
    ahead = 1003.5
    assert time_lag(1000.0, RecordLag(1), None, ahead).seconds == 0.0
    assert time_lag(1000.0, RecordLag(1), None, ahead, present_at=960.0).seconds == 40.0
    assert time_lag(1000.0, RecordLag(1), None, 950.0, present_at=960.0).seconds == 50.0


def test_time_lag_of_expired_records_keeps_their_age() -> None:
    """Otherwise the lag of a stopped flow would not exceed the retention time."""
    partly_gone, all_gone = record_lag(100, 40, 70), record_lag(100, 40, 100)
    for lag in (partly_gone, all_gone):
        found = time_lag(1000.0, lag, Bracket(100.0, 105.0, 100.0), record_timestamp=990.0)
        assert found.seconds == 900.0
    assert time_lag(1000.0, all_gone, None).origin is LagOrigin.ABSENT


def test_time_lag_is_absent_without_arrival_or_position() -> None:
    absent = (None, LagOrigin.ABSENT)
    assert time_lag(1000.0, RecordLag(5), None) == absent
    assert time_lag(1000.0, record_lag(100, 101), None, record_timestamp=100.0) == absent


def test_rate_needs_two_samples() -> None:
    rate = SmoothedRate(half_life=10.0)
    assert rate.per_second is None
    rate.add(0.0, 100.0)
    assert rate.per_second is None
    rate.add(5.0, 150.0)
    assert rate.per_second == 10.0


def test_rate_weight_halves_each_half_life() -> None:
    rate = SmoothedRate(half_life=10.0)
    rate.add(0.0, 0.0)
    rate.add(10.0, 100.0)
    rate.add(20.0, 100.0)
    assert rate.per_second == 5.0
    uneven = SmoothedRate(half_life=10.0)
    for at, value in ((0.0, 0.0), (10.0, 100.0), (12.5, 100.0), (15.0, 100.0), (20.0, 100.0)):
        uneven.add(at, value)
    assert uneven.per_second == pytest.approx(5.0)
    rate.add(20.0, 500.0)  # the same time: ignored
    assert rate.per_second == 5.0


@given(
    slope=st.floats(-1e6, 1e6),
    gaps=st.lists(st.floats(0.1, 1000.0), min_size=1, max_size=20),
)
def test_rate_of_steady_change_is_exact_with_irregular_samples(
    slope: float, gaps: list[float]
) -> None:
    rate, at = SmoothedRate(), 0.0
    rate.add(at, 0.0)
    for gap in gaps:
        at += gap
        rate.add(at, slope * at)
    assert rate.per_second == pytest.approx(slope, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("case", "lag", "rate", "expected"),
    [
        ("1000 records at 50 a second less", 1000, -50.0, 20.0),
        ("no lag is caught up, whatever the rate", 0, None, 0.0),
        ("a growing lag is never caught up", 1000, 1.0, None),
        ("a constant lag is never caught up", 1000, 0.0, None),
        ("an unknown rate", 1000, None, None),
    ],
)
def test_catch_up_seconds(case: str, lag: int, rate: float | None, expected: float | None) -> None:
    assert catch_up_seconds(lag, rate) == expected, case


def test_rate_with_non_positive_half_life_raises_value_error() -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        SmoothedRate(half_life=0.0)


def test_arrived_is_between_previous_request_and_response() -> None:
    history = ArrivalHistory()
    history.add(None, 10.5, 100)
    history.add(10.0, 15.5, 111)
    history.add(15.0, 20.0, 131)
    assert history.arrived(100) == Bracket(10.0, 15.5, 10.0)
    assert history.arrived(102) == Bracket(10.0, 15.5, 11.0)
    assert history.arrived(111) == Bracket(15.0, 20.0, 15.0)
    assert history.arrived(130) == Bracket(15.0, 20.0, 19.75)


def test_arrived_after_idle_polls_is_bracketed_by_last_poll() -> None:
    history = ArrivalHistory()
    history.add(None, 0.1, 100)
    for request in (0.0, 5.0, 10.0, 15.0):
        history.add(request, request + 5.1, 100)
    history.add(20.0, 25.1, 101)
    assert history.arrived(100) == Bracket(20.0, 25.1, 20.0)
    assert len(history) == 1


def test_arrived_after_unreachable_source_has_wider_bracket() -> None:
    history = ArrivalHistory()
    history.add(None, 0.1, 100)
    history.add(0.0, 600.0, 200)
    assert history.arrived(150) == Bracket(0.0, 600.0, 300.0)


@pytest.mark.parametrize(
    ("case", "offset"),
    [("below the first poll", 99), ("not there yet", 120), ("far beyond", 10**9)],
)
def test_arrived_outside_history_is_none(case: str, offset: int) -> None:
    history = ArrivalHistory()
    assert history.arrived(offset) is None
    history.add(None, 0.1, 100)
    history.add(0.0, 5.1, 120)
    assert history.arrived(offset) is None, case


@pytest.mark.parametrize(
    ("case", "previous", "end"),
    [("an end that went back", 5.0, 50), ("a poll without predecessor", None, 200)],
)
def test_history_restarts(case: str, previous: float | None, end: int) -> None:
    history = ArrivalHistory()
    history.add(None, 0.1, 100)
    history.add(0.0, 5.1, 120)
    history.add(previous, 10.1, end)
    assert history.arrived(110) is None, case
    assert history.first_offset == end
    history.add(10.0, 15.1, end + 1)
    assert history.arrived(end) == Bracket(10.0, 15.1, 10.0)


def test_forget_below_drops_replicated_offsets() -> None:
    history = ArrivalHistory()
    history.add(None, 0.1, 0)
    for poll in range(1, 5):
        history.add(poll - 1.0, float(poll), poll * 10)
    history.forget_below(20)
    assert history.arrived(19) is None
    assert history.arrived(20) == Bracket(2.0, 3.0, 2.0)
    history.forget_below(25)
    assert history.arrived(25) == Bracket(2.0, 3.0, 2.5)
    history.forget_below(40)
    assert len(history) == 0
    history.add(4.0, 5.1, 41)
    assert history.arrived(40) == Bracket(4.0, 5.1, 4.0)


def test_forget_below_keeps_three_coarse_points() -> None:
    history = ArrivalHistory()
    history.add(None, 0.0, 0)
    for poll in range(1, 21):
        history.add(10.0 * poll - 10, 10.0 * poll, 5 * poll)
        history.forget_below(0, coarse_below=5 * poll - 5)
    # One for the backlog.
    assert (len(history), history.first_offset) == (3 + 1, 0)
    assert history.arrived(0) == (0.0, 170.0, 0.0)
    coarse = history.arrived(42)
    assert coarse is not None
    assert coarse[:2] == (0.0, 170.0)
    assert coarse.likely == pytest.approx(84.0, abs=1.0)
    assert history.arrived(97) == (190.0, 200.0, 194.0)
    history.forget_below(86, coarse_below=95)
    assert (len(history), history.first_offset) == (3, 85)
    assert history.arrived(85) == (170.0, 180.0, 170.0)


def test_history_of_six_hour_stop_keeps_max_points_and_narrow_brackets() -> None:
    history = ArrivalHistory(max_points=64)
    history.add(None, 0.0, 0)
    polls = 6 * 3600 // 5
    for poll in range(1, polls + 1):
        history.add((poll - 1) * 5.0, poll * 5.0, poll * 100)
    assert len(history) <= 64
    now = polls * 5.0
    for offset in range(0, polls * 100, 997):
        found = history.arrived(offset)
        assert found is not None
        arrived = offset / 100 * 5.0
        assert found.earliest <= arrived <= found.latest
        age = now - arrived
        # The width is proportional to the age, so the error of a lag is proportional to the lag.
        assert found.latest - found.earliest <= max(0.3 * age, 15.0)


Step = tuple[float, int, bool]
STEPS = st.lists(
    st.tuples(st.floats(0.01, 1000.0), st.integers(0, 50), st.booleans()),
    min_size=2,
    max_size=120,
)


@given(steps=STEPS, max_points=st.integers(4, 12), data=st.data())
def test_arrived_always_encloses_true_arrival(
    steps: list[Step], max_points: int, data: st.DataObject
) -> None:
    """Records arrive at known times; polls succeed or fail, and the history thins and drops."""
    history = ArrivalHistory(max_points)
    arrivals: list[float] = []
    now, previous = 0.0, None
    position = 0
    for gap, arriving, fails in steps:
        arrivals.extend(now + gap * (k + 1) / (arriving + 1) for k in range(arriving))
        request = now + gap
        response = request + min(gap, 1.0) / 2
        now = response
        if fails:
            continue
        history.add(previous, response, len(arrivals))
        previous = request
        if data.draw(st.integers(0, 5)) == 0:
            position = data.draw(st.integers(position, len(arrivals)))
            history.forget_below(position)
        assert len(history) <= max_points
    starts = history.first_offset
    if starts is None:
        return
    for offset, arrived in enumerate(arrivals):
        found = history.arrived(offset)
        if found is not None:
            assert found.earliest <= arrived <= found.latest
            assert found.earliest <= found.likely <= found.latest
    if previous is not None:
        known = history.arrived(starts)
        assert known is not None or len(history) == 0


def test_history_of_10000_caught_up_partitions_uses_little_memory() -> None:
    tracemalloc.start()
    histories = [ArrivalHistory() for _ in range(10_000)]
    for history in histories:
        history.add(None, 0.1, 1_000_000_000)
        history.add(0.0, 5.1, 1_000_000_100)
        history.forget_below(1_000_000_100)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(len(history) == 0 for history in histories)
    assert size < 3_000_000
    assert sys.getsizeof(histories[0]) < 100


def test_history_with_small_max_points_raises_value_error() -> None:
    with pytest.raises(ValueError, match="4 points or more"):
        ArrivalHistory(max_points=3)


@given(
    arrivals=st.lists(st.integers(0, 3), min_size=12, max_size=300),
    live=st.integers(1, 10),
    written=st.lists(st.booleans(), min_size=300, max_size=300),
)
def test_brackets_extended_back_contain_the_arrivals(
    arrivals: list[int], live: int, written: list[bool]
) -> None:
    """A poll every 5 s sees *arrivals* new records, of 2 s before; the last *live* are our own."""
    ends, arrived = [0], []
    for number, count in enumerate(arrivals):
        arrived += [number * 5.0 - 2.0] * count
        ends.append(ends[-1] + count)
    history, start = ArrivalHistory(max_points=16), len(arrivals) - live
    for number in range(start, len(arrivals)):
        before = None if number == start else (number - 1) * 5.0
        history.add(before, number * 5.0 + 0.1, ends[number + 1])
    for number in range(start - 1, -1, -1):
        if arrivals[number] or written[number]:
            # A writer that has seen the preceding poll names it.
            named = (number - 1) * 5.0
            times = PollTimes(number * 5.0, number * 5.0 + 0.1, named, named + 0.1)
            assert history.extend_back(ends[number + 1], times)
    assert len(history) <= 16 + live
    for offset, at in enumerate(arrived):
        bracket = history.arrived(offset)
        assert bracket is None or bracket.earliest <= at <= bracket.latest
    known = [offset for offset in range(len(arrived)) if history.arrived(offset) is not None]
    assert known == list(range(history.first_offset or 0, len(arrived)))


def test_history_of_a_truncated_log_is_not_extended() -> None:
    history = ArrivalHistory()
    history.add(None, 100.0, 50)
    assert history.lacks(40)
    assert not history.extend_back(80, PollTimes(80.0, 80.1))
    assert history.extend_back(10, PollTimes(70.0, 70.1))
    assert history.arrived(20) is None
    assert not history.lacks(40)


def test_poll_of_a_replica_whose_clock_is_behind_is_no_truncation() -> None:
    history = ArrivalHistory()
    history.add(None, 100.0, 50)
    assert history.extend_back(52, PollTimes(99.5, 99.6, 94.5, 94.6))
    assert history.extend_back(40, PollTimes(94.5, 94.6))
    assert history.arrived(45) == Bracket(94.5, 100.0, 97.25)


def test_history_is_not_extended_once_its_start_was_replicated() -> None:
    history = ArrivalHistory()
    history.add(None, 100.0, 50)
    history.add(100.0, 105.0, 60)
    history.forget_below(60)
    assert not history.lacks(70)
    assert history.extend_back(10, PollTimes(80.0, 80.1))
    assert history.first_offset == 60


HOUR = RetentionPolicy(seconds=3600.0, size_bytes=None)
SIZE = RetentionPolicy(seconds=None, size_bytes=10**9)
BOTH = RetentionPolicy(seconds=3600.0, size_bytes=10**9)
NONE = RetentionPolicy(None, None)


def config(policy: str = "delete", ms: str = "604800000", size: str = "-1") -> dict[str, str]:
    return {"cleanup.policy": policy, "retention.ms": ms, "retention.bytes": size}


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        (config(), RetentionPolicy(604800.0, None)),
        (config(ms="-1", size="1000"), RetentionPolicy(None, 1000)),
        (config(policy="compact", ms="1000", size="1000"), RetentionPolicy(None, None)),
        (config(policy="compact,delete", ms="1500"), RetentionPolicy(1.5, None)),
        (config(policy=" delete , compact"), RetentionPolicy(604800.0, None)),
    ],
)
def test_retention_policy_from_topic_config(
    settings_: dict[str, str], expected: RetentionPolicy
) -> None:
    assert RetentionPolicy.from_topic_config(settings_) == expected


@pytest.mark.parametrize(
    ("case", "policy", "figures", "expected"),
    [
        ("time", HOUR, (500, 600.0, None), Headroom(1000, 3000.0, RetentionLimit.TIME)),
        ("no backlog", HOUR, (0, None, None), Headroom(1000, 3600.0, RetentionLimit.TIME)),
        ("overdue", HOUR, (500, 4000.0, None), Headroom(1000, -400.0, RetentionLimit.TIME)),
        ("size", SIZE, (500, None, 4.0), Headroom(1000, 250.0, RetentionLimit.SIZE)),
        ("size, idle", SIZE, (500, None, 0.0), Headroom(1000, None, RetentionLimit.UNLIMITED)),
        ("the smaller: time", BOTH, (9, 3500.0, 4.0), Headroom(1000, 100.0, RetentionLimit.TIME)),
        ("the smaller: size", BOTH, (9, 600.0, 4.0), Headroom(1000, 250.0, RetentionLimit.SIZE)),
        ("both, idle", BOTH, (9, 600.0, 0.0), Headroom(1000, 3000.0, RetentionLimit.TIME)),
        ("no limit", NONE, (500, 600.0, 4.0), Headroom(1000, None, RetentionLimit.UNLIMITED)),
        ("age unknown", HOUR, (500, None, 4.0), Headroom(1000, None, RetentionLimit.UNKNOWN)),
        ("rate unknown", BOTH, (9, 600.0, None), Headroom(1000, None, RetentionLimit.UNKNOWN)),
        ("settings unknown", None, (9, 600.0, 4.0), Headroom(1000, None, RetentionLimit.UNKNOWN)),
    ],
)
def test_headroom(
    case: str,
    policy: RetentionPolicy | None,
    figures: tuple[int, float | None, float | None],
    expected: Headroom,
) -> None:
    waiting, age, rate = figures
    found = headroom(1500, 500, policy, lag_records=waiting, oldest_age=age, production_rate=rate)
    assert found == expected, case


def test_headroom_records_are_negative_by_lost_records() -> None:
    found = headroom(500, 520, HOUR, lag_records=7, oldest_age=1.0, production_rate=1.0)
    assert found == Headroom(-20, 0.0, RetentionLimit.PASSED)
