"""Latency histograms and cells of keys."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.audit.unit_outcome import (
    MAX_CELLS,
    PERCENTILES,
    AffinityOutcome,
    KeyCell,
    LatencyBracket,
    LatencyCells,
    average_latency,
    count_latencies,
    latency_bucket,
    latency_percentile,
    lower_bound_ms,
    merge_latencies,
    minimum_n,
    percentile_name,
    pool_key_cells,
    upper_bound_ms,
)


def cells_of(brackets: Sequence[tuple[int | None, int]]) -> LatencyCells:
    return LatencyCells(
        Counter(
            (None if low is None else latency_bucket(low), latency_bucket(high))
            for low, high in brackets
        ),
        total_upper_ms=sum(high for _, high in brackets),
        total_lower_ms=sum(low or 0 for low, _ in brackets),
    )


@pytest.mark.parametrize(
    ("ms", "index"),
    [(-5, 0), (0, 0), (1, 0), (2, 16), (3, 26), (4, 32), (1000, 160), (1024, 160), (1025, 161)],
)
def test_bucket_bounds(ms: int, index: int) -> None:
    assert latency_bucket(ms) == index


def test_bucket_contains_its_latency_within_4_5_percent() -> None:
    for ms in [*range(1, 100_000), *(2**k + d for k in range(17, 45) for d in (-1, 0, 1))]:
        low, high = lower_bound_ms(latency_bucket(ms)), upper_bound_ms(latency_bucket(ms))
        assert low <= ms <= high
        assert high - low <= 0.0444 * low + 1
        assert latency_bucket(high) == latency_bucket(ms)
        assert latency_bucket(high + 1) > latency_bucket(ms)
    assert all(
        lower_bound_ms(latency_bucket(ms)) == upper_bound_ms(latency_bucket(ms)) == ms
        for ms in range(2, 24)
    )
    assert (lower_bound_ms(0), upper_bound_ms(0)) == (0, 1)


def test_minimum_n_per_percentile() -> None:
    assert [minimum_n(q) for q in PERCENTILES] == [5, 29, 59, 299, 2995]
    one_short = cells_of([(5, 9)] * 298)
    assert latency_percentile(one_short, 0.99) is None
    assert latency_percentile(cells_of([(5, 9)] * 299), 0.99) == LatencyBracket(5, 9)
    assert latency_percentile(LatencyCells(), 0.5) is None


def test_percentile_uses_nearest_rank() -> None:
    latency = cells_of([(ms, ms) for ms in range(2, 12)] * 10)  # ten of each of 2..11 ms
    assert latency_percentile(latency, 0.5) == LatencyBracket(6, 6)  # the 50th is the last 6
    assert latency_percentile(latency, 0.9) == LatencyBracket(10, 10)
    assert latency_percentile(latency, 0.95) == LatencyBracket(11, 11)


def test_percentile_sorts_unknown_lower_bound_first() -> None:
    latency = cells_of([(None, 20)] * 5 + [(10, 15)] * 5)
    assert latency_percentile(latency, 0.5) == LatencyBracket(None, 15)
    latency = cells_of([(None, 20)] * 4 + [(10, 15)] * 6)
    assert latency_percentile(latency, 0.5) == LatencyBracket(10, 15)


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
        found = latency_percentile(latency, q)
        assert found is not None
        assert found.lower is not None
        assert found.lower <= truth[math.ceil(q * len(truth)) - 1] <= found.upper
    mean = average_latency(latency)
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
            wide, plain = (
                latency_percentile(latency, q, sampled=True),
                latency_percentile(latency, q),
            )
            assert wide is not None
            assert plain is not None
            inside += (wide.lower or 0) <= true <= wide.upper
            narrow += (plain.lower or 0) <= true <= plain.upper
        assert inside >= floor * 200
        assert narrow < 0.8 * 200


def test_percentile_of_small_sample_is_none() -> None:
    assert latency_percentile(cells_of([(5, 9)] * 367), 0.99, sampled=True) is None
    assert latency_percentile(cells_of([(5, 9)] * 368), 0.99, sampled=True) == LatencyBracket(5, 9)


def test_merge_adds_histograms() -> None:
    one = LatencyCells({(0, 3): 2, (None, 4): 1}, negative=1, total_upper_ms=9, total_lower_ms=4)
    other = LatencyCells({(0, 3): 5}, negative=2, total_upper_ms=1, total_lower_ms=1)
    both = merge_latencies([one, other, LatencyCells()])
    assert dict(both.cells) == {(0, 3): 7, (None, 4): 1}
    assert (both.negative, both.total_upper_ms, both.total_lower_ms) == (3, 10, 5)
    assert count_latencies(both) == 8
    assert average_latency(both) == LatencyBracket(5 / 8, 10 / 8)
    assert average_latency(LatencyCells(negative=3)) is None


def test_percentile_name_format() -> None:
    assert [percentile_name(q) for q in (0.5, 0.95, 0.99, 0.999)] == ["p50", "p95", "p99", "p99.9"]


def test_pool_key_cells_merges_equal_keys() -> None:
    keys = [KeyCell(1, 3, 3, 1), KeyCell(1, 2, 2), KeyCell(1, 3, 3, 1), KeyCell(1, 3, 3)]
    assert pool_key_cells(keys) == (
        KeyCell(1, 2, 2),
        KeyCell(1, 3, 3),
        KeyCell(2, 6, 6, 2),
    )
    assert pool_key_cells([]) == ()


def test_pool_key_cells_of_two_outcomes_equals_all_keys() -> None:
    draw = random.Random(5)
    keys = [KeyCell(1, n := draw.randint(1, 9), n, draw.choice((0, 0, n))) for _ in range(300)]
    assert pool_key_cells(
        [*pool_key_cells(keys[:100]), *pool_key_cells(keys[100:])]
    ) == pool_key_cells(keys)


def test_pool_key_cells_within_limit_is_exact() -> None:
    keys = [KeyCell(1, size, size) for size in range(1, MAX_CELLS + 1)]
    assert pool_key_cells(keys) == tuple(keys)
    assert len(pool_key_cells([*keys, KeyCell(1, 600, 600)])) < MAX_CELLS


@pytest.mark.parametrize(("limit", "doublings"), [(MAX_CELLS, 1 / 16), (100, 1 / 4), (16, 4)])
def test_pool_key_cells_beyond_limit_merges_similar_keys_and_keeps_totals(
    limit: int, doublings: float
) -> None:
    keys = [KeyCell(1, size, size, size * (size % 3 == 0)) for size in range(1, 5_000)]
    cells = pool_key_cells(keys, limit)
    assert limit / 2 < len(cells) <= limit
    assert AffinityOutcome(cells=cells).total == AffinityOutcome(cells=tuple(keys)).total
    # An event is never distributed to keys without one.
    assert sum(cell.keys for cell in cells if cell.moved) == sum(key.moved > 0 for key in keys)
    quiet = sorted(cell.copies / cell.keys for cell in cells if not cell.moved)
    # There are fewer small sizes than buckets.
    large = [size for size in quiet if size > 100]
    assert all(later / earlier < 2 ** (2 * doublings) for earlier, later in pairwise(large))


def test_pool_key_cells_with_extreme_sizes_stays_within_limit() -> None:
    draw = random.Random(6)
    sizes = [[draw.choice((0, 1 << draw.randrange(40))) for _ in range(4)] for _ in range(1_000)]
    keys = [KeyCell(1, *each) for each in sizes]
    assert len(pool_key_cells(keys, 16)) <= 16
