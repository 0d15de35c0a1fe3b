"""Latencies in histograms, and comparisons: percentiles, merging, false and missed findings."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.perf.perf_statistics import (
    RESOLUTION,
    Latencies,
    bucket_of,
    compare_pairs,
)

SECONDS = st.lists(st.floats(2e-6, 600), min_size=1, max_size=300)


def latencies(values: list[float]) -> Latencies:
    found = Latencies()
    found.counts.update(map(bucket_of, values))
    return found


@given(SECONDS, st.sampled_from([1.0, 50.0, 90.0, 99.0, 99.9, 100.0]))
def test_percentile_is_the_record_of_the_nearest_rank(values: list[float], percent: float) -> None:
    rank = max(math.ceil(len(values) * percent / 100), 1)
    found = latencies(values).percentile(percent)
    assert found == pytest.approx(sorted(values)[rank - 1], rel=RESOLUTION)


@given(SECONDS, SECONDS)
def test_merged_histograms_are_those_of_all_records(first: list[float], other: list[float]) -> None:
    merged = Latencies.merged([latencies(first), latencies(other)])
    assert merged.counts == latencies(first + other).counts
    assert sum(merged.by_bound().values()) == merged.count == len(first) + len(other)


def test_nothing_has_no_percentile() -> None:
    assert Latencies().percentile(50) is None
    assert bucket_of(0.0) == bucket_of(-1.0) == 0


def noisy(source: random.Random, middle: float, count: int) -> list[float]:
    return [middle * math.exp(source.gauss(0, 0.1)) for _ in range(count)]


@pytest.mark.parametrize("pairs", [3, 5, 10])
def test_equal_settings_differ_in_at_most_two_of_a_hundred_comparisons(pairs: int) -> None:
    source = random.Random(4711)
    findings = 0
    for _ in range(500):
        found = compare_pairs(noisy(source, 1, pairs), noisy(source, 1, pairs))
        assert found is not None
        findings += found.is_different
    assert findings <= 10


def test_setting_that_is_half_as_fast_is_found() -> None:
    source = random.Random(42)
    covered = 0
    for _ in range(200):
        found = compare_pairs(noisy(source, 1, 5), noisy(source, 2, 5))
        assert found is not None
        assert found.is_different
        covered += found.low < 2 < found.high
    assert covered >= 194  # 99 of 100, and what may be missed by chance


def test_difference_below_the_width_of_a_bucket_is_none() -> None:
    found = compare_pairs([1.0] * 5, [1 + RESOLUTION / 2] * 5)
    assert found is not None
    assert not found.is_different


def test_common_drift_of_a_machine_does_not_widen_the_interval() -> None:
    base = [1.0, 2.0, 4.0, 8.0]
    found = compare_pairs(base, [1.5 * each for each in base])
    assert found is not None
    assert found.pairs == 4
    assert (found.low, found.ratio, found.high) == pytest.approx((1.5, 1.5, 1.5), rel=0.01)


@pytest.mark.parametrize("base", [[], [1.0, 1.0], [0.0, 1.0, 1.0]])
def test_less_than_three_pairs_show_nothing(base: list[float]) -> None:
    assert compare_pairs(base, [1.0, 1.0, 1.0]) is None
