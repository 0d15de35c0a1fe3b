import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.replication_lag import (
    Bracket,
    LagOrigin,
    RecordLag,
    SmoothedRate,
    catch_up_seconds,
    open_transaction_records,
    record_lag,
    time_lag,
)

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
