"""Counter increases like in Prometheus, and the bound of their error."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_reference import (
    Counters,
    Sample,
    extrapolation_bound,
    increase,
    increases,
    short_window,
    step,
    step_sum,
)


def every(seconds: int, *values: float, start: int = 0) -> list[Sample]:
    return [Sample((start + n * seconds) * 1000, value) for n, value in enumerate(values)]


def test_increase_with_samples_on_both_edges_is_exact() -> None:
    assert increase(every(60, 10, 20, 35, 40, 60, 70), 300_000, 300) == 60.0


def test_increase_is_extrapolated_to_near_edges() -> None:
    # 30 s, 90 s, ... 270 s: 240 s hold 8, so 300 s hold 10.
    samples = every(60, 100, 102, 104, 106, 108, start=30)
    assert increase(samples, 300_000, 300) == pytest.approx(10.0, rel=1e-12)


def test_increase_is_extrapolated_by_half_an_interval_to_far_edges() -> None:
    # 120 s without a sample at each end: 30 s are added there instead.
    assert increase(every(60, 100, 106, start=120), 300_000, 300) == pytest.approx(12.0, rel=1e-12)


def test_increase_is_not_extrapolated_below_zero() -> None:
    # 20 of 40 at a rate of 20 a minute: zero was a minute before, and half of that is near.
    samples = every(60, 5, 25, 45, start=50)
    # To zero: 120 s x 5/40 = 15 s; to the end: 170 s -> 180 s = 10 s.
    assert increase(samples, 180_000, 180) == pytest.approx(40 * (120 + 15 + 10) / 120, rel=1e-12)


def test_increase_after_reset_counts_from_zero() -> None:
    assert increase(every(60, 100, 160, 10, 30), 180_000, 180) == 90.0


@pytest.mark.parametrize("count", [0, 1])
def test_increase_with_less_than_two_samples_is_none(count: int) -> None:
    assert increase(every(60, *range(count)), 300_000, 300) is None


def test_increases_are_averaged_over_replicas_and_not_negative() -> None:
    one = Counters(good=every(60, 0, 60, 120), total=every(60, 0, 60, 130))
    two = Counters(good=every(60, 0, 60, 120), total=every(60, 0, 60, 120))
    assert increases([one, two], 120_000, 120) == (5.0, 125.0)
    assert increases([Counters(total=one.total)], 120_000, 120) == (130.0, 130.0)
    ahead = Counters(good=every(60, 0, 60, 140), total=every(60, 0, 60, 130))
    assert increases([ahead], 120_000, 120) == (0.0, 130.0)
    assert increases([Counters(good=one.good)], 120_000, 120) is None


def test_step_in_maintenance_is_excluded() -> None:
    counter = Counters(good=every(30, *range(0, 1210, 10)), total=every(30, *range(0, 2420, 20)))
    active = [600_000, 630_000]
    free, excluded = step([counter], 300_000, active), step([counter], 900_000, active)
    assert free.counts == (100.0, 200.0)
    assert free.excluded is None
    assert (excluded.counts, excluded.unknown, excluded.excluded) == (None, None, 200.0)
    # 630 s and two minutes in which events settle lie within [1050 - 420, 1050] for the last time.
    assert step([counter], 1_050_000, active).counts is None
    assert step([counter], 1_050_001, active).counts == pytest.approx((100.0, 200.0))
    assert short_window([counter], 900_000, 300, active) is None
    # An hour around it: recorded increments of five minutes, each event in ten of them.
    found = short_window([counter], 1_800_000, 1800, active)
    assert found is not None
    assert found.bad / found.events == pytest.approx(0.5, rel=1e-12)


def test_step_sum_adds_counts() -> None:
    steps = [step([Counters(total=every(60, *range(0, 6100, 10)))], at, ()) for at in
             range(300_000, 3_600_001, 300_000)]  # fmt: skip
    assert step_sum(steps, 3_600_000, 3600) == (600.0, 600.0)
    assert step_sum(steps, 3_600_000, 600) == (100.0, 100.0)
    assert step_sum(steps, 7_200_000, 3600) is None


@given(
    gaps=st.lists(st.integers(0, 3000), min_size=1, max_size=400),
    phase=st.integers(0, 14_999),
    window=st.sampled_from([60, 300, 1800]),
)
def test_error_of_increase_is_within_the_bound(gaps: list[int], phase: int, window: int) -> None:
    """Compared with exact event times, for any event rate and scrape phase."""
    interval = 15
    moments, now = [], 0
    for gap in gaps:
        now += gap
        moments.append(now)
    # The counter started before the window.
    samples = [
        Sample(at, 1e9 + bisect_right(moments, at))
        for at in range(phase - 3_600_000, moments[-1] + 60_000, interval * 1000)
    ]
    for at in range(0, moments[-1] + 30_000, 41_000):
        found = increase(samples, at, window)
        assert found is not None
        start = at - window * 1000
        count = bisect_right(moments, at) - bisect_right(moments, start)
        # The peak over an edge of up to two intervals, which is where the error is made.
        peak = max_rate(moments, start, at, 2 * interval * 1000)
        assert abs(found - count) <= extrapolation_bound(interval, window) * peak * window + 1e-6


def max_rate(moments: list[int], start: int, end: int, length: int) -> float:
    """The maximum events per second in any *length* ms near [start, end]."""
    near = [at for at in moments if start - length <= at <= end + length]
    most = max((bisect_right(near, at + length) - n for n, at in enumerate(near)), default=0)
    return most / (length / 1000)


def test_extrapolation_bound_of_a_short_window_raises() -> None:
    assert extrapolation_bound(15, 300) == 0.1
    assert extrapolation_bound(15, 3600) == pytest.approx(1 / 120)
    with pytest.raises(ValueError, match="of at most half the window"):
        extrapolation_bound(40, 60)
    with pytest.raises(ValueError, match="expected a positive interval"):
        extrapolation_bound(0, 60)


@given(
    periods=st.lists(st.tuples(st.integers(0, 7_199), st.integers(1, 400)), max_size=20),
    phase=st.integers(0, 14_999),
)
def test_error_of_step_sums_and_ratios_is_within_the_bound(
    periods: list[tuple[int, int]], phase: int
) -> None:
    """One event a second, bad in *periods*, counted individually and by steps."""
    bad = {at for start, length in periods for at in range(start, start + length)}
    interval, hours = 15, 7200
    wrong = sorted(bad)
    total, good = [], []
    for at in range(phase, (hours + 30) * 1000, interval * 1000):
        # Events happen on the full second; the counters are older than the window.
        seen = at // 1000 + 1
        total.append(Sample(at, 1e6 + seen))
        good.append(Sample(at, 1e6 + seen - bisect_right(wrong, at // 1000)))
    counter = Counters(good=good, total=total)
    ends = range(600_000, hours * 1000 + 1, 300_000)
    chain = step_sum([step([counter], at) for at in ends], ends[-1], hours - 300)
    assert chain is not None
    first = ends[0] // 1000 - 300
    events, true_bad = hours - first, sum(first < at <= hours for at in wrong)
    bound = extrapolation_bound(interval, 300)
    # One event a second is the peak of either counter; an edge may cut one more.
    allowed = bound * events + len(ends)
    assert abs(chain.events - events) <= allowed
    assert abs(chain.bad - true_bad) <= allowed
    assert abs(chain.bad / chain.events - true_bad / events) <= bound + len(ends) / events
