import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.audit.latency_histogram import (
    PERCENTILES,
    Bracket,
    Share,
    average,
    bucket,
    lower_bound_ms,
    merge,
    minimum_n,
    observed,
    percentile,
    percentile_name,
    upper_bound_ms,
    within,
)
from mm2slo_core.audit.unit_outcome import LatencyCells


def cells_of(brackets: Sequence[tuple[int | None, int]]) -> LatencyCells:
    return LatencyCells(
        Counter((None if low is None else bucket(low), bucket(high)) for low, high in brackets),
        total_upper_ms=sum(high for _, high in brackets),
        total_lower_ms=sum(low or 0 for low, _ in brackets),
    )


@pytest.mark.parametrize(
    ("ms", "index"),
    [(-5, 0), (0, 0), (1, 0), (2, 16), (3, 26), (4, 32), (1000, 160), (1024, 160), (1025, 161)],
)
def test_bucket_bounds(ms: int, index: int) -> None:
    assert bucket(ms) == index


def test_bucket_contains_its_latency_within_4_5_percent() -> None:
    for ms in [*range(1, 100_000), *(2**k + d for k in range(17, 45) for d in (-1, 0, 1))]:
        low, high = lower_bound_ms(bucket(ms)), upper_bound_ms(bucket(ms))
        assert low <= ms <= high
        assert high - low <= 0.0444 * low + 1
        assert bucket(high) == bucket(ms)
        assert bucket(high + 1) > bucket(ms)
    assert all(
        lower_bound_ms(bucket(ms)) == upper_bound_ms(bucket(ms)) == ms for ms in range(2, 24)
    )
    assert (lower_bound_ms(0), upper_bound_ms(0)) == (0, 1)


def test_minimum_n_per_percentile() -> None:
    assert [minimum_n(q) for q in PERCENTILES] == [5, 29, 59, 299, 2995]
    one_short = cells_of([(5, 9)] * 298)
    assert percentile(one_short, 0.99) is None
    assert percentile(cells_of([(5, 9)] * 299), 0.99) == Bracket(5, 9)
    assert percentile(LatencyCells(), 0.5) is None


def test_percentile_uses_nearest_rank() -> None:
    latency = cells_of([(ms, ms) for ms in range(2, 12)] * 10)  # ten of each of 2..11 ms
    assert percentile(latency, 0.5) == Bracket(6, 6)  # the 50th is the last 6
    assert percentile(latency, 0.9) == Bracket(10, 10)
    assert percentile(latency, 0.95) == Bracket(11, 11)


def test_percentile_sorts_unknown_lower_bound_first() -> None:
    latency = cells_of([(None, 20)] * 5 + [(10, 15)] * 5)
    assert percentile(latency, 0.5) == Bracket(None, 15)
    latency = cells_of([(None, 20)] * 4 + [(10, 15)] * 6)
    assert percentile(latency, 0.5) == Bracket(10, 15)


@given(
    st.lists(
        st.tuples(st.integers(0, 90_000), st.integers(0, 5_000), st.integers(0, 5_000)),
        min_size=60,
        max_size=80,
    )
)
def test_percentile_and_average_enclose_true_values(
    records: list[tuple[int, int, int]],
) -> None:
    truth = sorted(ms for ms, _, _ in records)
    latency = cells_of([(max(0, ms - before), ms + after) for ms, before, after in records])
    for q in (0.5, 0.9, 0.95):
        found = percentile(latency, q)
        assert found is not None
        assert found.lower is not None
        assert found.lower <= truth[math.ceil(q * len(truth)) - 1] <= found.upper
    mean = average(latency)
    assert mean is not None
    assert mean.lower is not None
    assert mean.lower <= sum(truth) / len(truth) <= mean.upper


def test_percentile_of_sample_encloses_quantile_of_all_records() -> None:
    draw = random.Random(5)
    population = sorted(int(draw.lognormvariate(5, 1)) + 1 for _ in range(20_000))
    for q, floor in ((0.5, 0.94), (0.99, 0.94)):
        true = population[math.ceil(q * len(population)) - 1]
        inside = narrow = 0
        for _ in range(200):
            latency = cells_of([(ms, ms) for ms in draw.sample(population, 500)])
            wide, plain = percentile(latency, q, sampled=True), percentile(latency, q)
            assert wide is not None
            assert plain is not None
            inside += (wide.lower or 0) <= true <= wide.upper
            narrow += (plain.lower or 0) <= true <= plain.upper
        assert inside >= floor * 200
        assert narrow < 0.8 * 200


def test_percentile_of_small_sample_is_none() -> None:
    assert percentile(cells_of([(5, 9)] * 367), 0.99, sampled=True) is None
    assert percentile(cells_of([(5, 9)] * 368), 0.99, sampled=True) == Bracket(5, 9)


def test_within_counts_certain_and_possible_good_records() -> None:
    latency = LatencyCells({(bucket(5), bucket(9)): 10, (bucket(8), bucket(20)): 3, (None, 80): 2})
    assert within(latency, 10) == Share(10, 15, 15)
    assert within(latency, 7) == Share(0, 12, 15)
    assert within(latency, 10, bad=4, unknown=5) == Share(10, 20, 24)
    skewed = LatencyCells({(0, 0): 1}, negative=2)
    assert within(skewed, 10) == Share(1, 3, 3)


def test_within_counts_bucket_around_threshold_as_possibly_good() -> None:
    latency = LatencyCells({(bucket(1000), bucket(1000)): 1})  # 981 to 1024 ms
    assert within(latency, 1000) == Share(0, 1, 1)
    assert within(latency, 1024) == Share(1, 1, 1)
    assert within(latency, 980) == Share(0, 0, 1)


def test_merge_adds_histograms() -> None:
    one = LatencyCells({(0, 3): 2, (None, 4): 1}, negative=1, total_upper_ms=9, total_lower_ms=4)
    other = LatencyCells({(0, 3): 5}, negative=2, total_upper_ms=1, total_lower_ms=1)
    both = merge([one, other, LatencyCells()])
    assert dict(both.cells) == {(0, 3): 7, (None, 4): 1}
    assert (both.negative, both.total_upper_ms, both.total_lower_ms) == (3, 10, 5)
    assert observed(both) == 8
    assert average(both) == Bracket(5 / 8, 10 / 8)
    assert average(LatencyCells(negative=3)) is None


def test_percentile_name_format() -> None:
    assert [percentile_name(q) for q in (0.5, 0.95, 0.99, 0.999)] == ["p50", "p95", "p99", "p99.9"]
