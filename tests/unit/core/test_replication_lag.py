from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.arrival_history import Bracket
from mm2slo_core.replication_lag import (
    LagAbsence,
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
            RecordLag(None, absence=LagAbsence.POSITION_BEYOND_END),
        ),
        ("no position", 100, None, 0, RecordLag(None, absence=LagAbsence.NO_POSITION)),
        ("no end", None, 4, 0, RecordLag(None, absence=LagAbsence.NO_END_OFFSET)),
    ],
)
def test_record_lag(
    case: str, high: int | None, position: int | None, start: int | None, expected: RecordLag
) -> None:
    assert record_lag(high, position, start) == expected, case


@given(high=OFFSETS, position=OFFSETS, start=OFFSETS)
def test_lag_and_expired_records_make_up_what_lies_behind_the_position(
    high: int, position: int, start: int
) -> None:
    lag = record_lag(high, position, min(start, high))
    if lag.records is None:
        assert position > high
    else:
        assert lag.records + lag.expired == high - position
        assert lag.records >= 0


def test_open_transactions_hold_back_what_lies_beyond_the_last_stable_offset() -> None:
    assert open_transaction_records(120, 100) == 20
    assert open_transaction_records(100, 120) is None


def test_time_lag_comes_from_the_history_first() -> None:
    lag = time_lag(1000.0, RecordLag(5), Bracket(900.0, 905.0, 903.0), record_timestamp=100.0)
    assert (lag.lower, lag.seconds, lag.upper) == (95.0, 97.0, 100.0)
    assert lag.origin is LagOrigin.HISTORY


def test_time_lag_falls_back_to_the_record_where_the_history_does_not_reach() -> None:
    lag = time_lag(1000.0, RecordLag(5), None, record_timestamp=100.0)
    assert (lag.seconds, lag.origin) == (900.0, LagOrigin.RECORD)


def test_time_lag_is_zero_when_nothing_waits_whatever_is_known() -> None:
    lag = time_lag(1000.0, RecordLag(0), None)
    assert (lag.seconds, lag.origin) == (0.0, LagOrigin.NO_BACKLOG)


def test_a_future_timestamp_gives_a_negative_age_and_not_zero() -> None:
    assert time_lag(1000.0, RecordLag(1), None, record_timestamp=1003.5).seconds == -3.5


def test_records_that_retention_took_keep_their_age() -> None:
    """Otherwise the lag of a stopped flow would end at the retention time."""
    partly_gone, all_gone = record_lag(100, 40, 70), record_lag(100, 40, 100)
    for lag in (partly_gone, all_gone):
        found = time_lag(1000.0, lag, Bracket(100.0, 105.0, 100.0), record_timestamp=990.0)
        assert found.seconds == 900.0
    assert time_lag(1000.0, all_gone, None).absence is LagAbsence.NOT_IN_HISTORY


def test_time_lag_tells_why_it_is_absent() -> None:
    assert time_lag(1000.0, RecordLag(5), None).absence is LagAbsence.NOT_IN_HISTORY
    unknown = time_lag(1000.0, record_lag(100, 101), None)
    assert (unknown.seconds, unknown.absence) == (None, LagAbsence.POSITION_BEYOND_END)


def test_a_rate_needs_two_samples() -> None:
    rate = SmoothedRate(half_life=10.0)
    assert rate.per_second is None
    rate.add(0.0, 100.0)
    assert rate.per_second is None
    rate.add(5.0, 150.0)
    assert rate.per_second == 10.0


def test_a_rate_forgets_by_half_each_half_life() -> None:
    rate = SmoothedRate(half_life=10.0)
    rate.add(0.0, 0.0)
    rate.add(10.0, 100.0)
    rate.add(20.0, 100.0)
    assert rate.per_second == 5.0
    uneven = SmoothedRate(half_life=10.0)
    for at, value in ((0.0, 0.0), (10.0, 100.0), (12.5, 100.0), (15.0, 100.0), (20.0, 100.0)):
        uneven.add(at, value)
    assert uneven.per_second == pytest.approx(5.0)
    rate.add(20.0, 500.0)  # no time has passed: nothing can be learned
    assert rate.per_second == 5.0
    rate.restart()
    assert rate.per_second is None


@given(
    slope=st.floats(-1e6, 1e6),
    gaps=st.lists(st.floats(0.1, 1000.0), min_size=1, max_size=20),
)
def test_a_steady_change_is_found_whatever_the_spacing_of_the_samples(
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
def test_catch_up(case: str, lag: int, rate: float | None, expected: float | None) -> None:
    assert catch_up_seconds(lag, rate) == expected, case


def test_a_half_life_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        SmoothedRate(half_life=0.0)
