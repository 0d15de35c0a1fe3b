import math
import random

import pytest

from mm2slo_core.audit.confidence_bounds import (
    Interval,
    clopper_pearson,
    cluster_bootstrap,
    order_statistic_ranks,
    statement,
    upper_bound,
)


# Published tables of the exact interval, and R's binom.test.
@pytest.mark.parametrize(
    ("events", "n", "lower", "upper"),
    [
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (10, 100, 0.0490, 0.1762),
        (0, 1_000_000, 0.0, 3.69e-6),
        (1, 1_000_000, 2.53e-8, 5.57e-6),
        (5, 1_000_000, 1.62e-6, 1.167e-5),
        (100, 100_000, 8.14e-4, 1.216e-3),
        (50_000, 100_000, 0.49690, 0.50310),
    ],
)
def test_clopper_pearson_equals_published_tables(
    events: int, n: int, lower: float, upper: float
) -> None:
    found = clopper_pearson(events, n)
    assert found.lower == pytest.approx(lower, abs=5e-5 if n <= 100 else 0, rel=3e-3)
    assert found.upper == pytest.approx(upper, abs=5e-5 if n <= 100 else 0, rel=3e-3)


def test_clopper_pearson_bounds_have_tails_of_2_5_percent() -> None:
    def tail(k: int, n: int, p: float) -> float:
        return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))

    for n in (1, 2, 7, 40):
        for k in range(n + 1):
            found = clopper_pearson(k, n)
            if k:
                assert tail(k, n, found.lower) == pytest.approx(0.025, rel=1e-6)
            if k < n:
                assert 1 - tail(k + 1, n, found.upper) == pytest.approx(0.025, rel=1e-6)
            assert found.contains(k / n)


def test_upper_bound_without_events_is_three_over_n() -> None:
    for n in (100, 10_000, 3_000_000):
        assert upper_bound(0, n) == pytest.approx(3 / n, rel=0.02)
    assert upper_bound(0, 3_000_000) < 1e-6
    assert upper_bound(0, 2_990_000) > 1e-6
    assert upper_bound(0, 59) <= 0.05 < upper_bound(0, 58)


@pytest.mark.parametrize(("events", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_bounds_with_impossible_counts_raise_value_error(events: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"{events} events in {n} draws"):
        clopper_pearson(events, n)
    with pytest.raises(ValueError, match="expected 0 <= events <= draws"):
        upper_bound(events, n)


@pytest.mark.parametrize(
    ("n", "q", "low", "high"),
    [(10, 0.5, 2, 9), (100, 0.5, 40, 61), (5, 0.5, None, None), (367, 0.99, 359, None)],
)
def test_order_statistic_ranks_equal_published_values(
    n: int, q: float, low: int | None, high: int | None
) -> None:
    found = order_statistic_ranks(n, q)
    assert (found[0], found[1]) == (low, high)


def test_order_statistic_ranks_of_large_sample_approach_normal() -> None:
    n, q = 100_000, 0.99
    spread = 1.96 * math.sqrt(n * q * (1 - q))
    low, high = order_statistic_ranks(n, q)
    assert low == pytest.approx(n * q - spread, abs=2)
    assert high == pytest.approx(n * q + spread, abs=2)


def test_cluster_bootstrap_is_wider_than_clopper_pearson() -> None:
    draw = random.Random(3)
    # One key in ten has only faulty records, 50 each.
    clusters = [(50 if draw.random() < 0.1 else 0, 50) for _ in range(400)]
    events, records = (sum(column) for column in zip(*clusters, strict=True))
    found = cluster_bootstrap(clusters, seed=1)
    naive = clopper_pearson(events, records)
    assert found.contains(events / records)
    assert found.upper - found.lower > 5 * (naive.upper - naive.lower)
    assert found.upper - found.lower == pytest.approx(
        2 * 1.96 * math.sqrt(0.1 * 0.9 / 400), rel=0.2
    )
    assert cluster_bootstrap(clusters, seed=1) == found
    assert cluster_bootstrap(clusters, seed=2) != found


def test_cluster_bootstrap_without_events_has_upper_bound_above_zero() -> None:
    assert cluster_bootstrap([], seed=1) == Interval(0, 1)
    assert cluster_bootstrap([(0, 9)] * 100, seed=1) == Interval(0, upper_bound(0, 100))


@pytest.mark.parametrize(
    ("events", "n", "census", "expected"),
    [
        (
            0,
            10_000,
            False,
            "loss is 0% (95 %: 0% to 0.0369%; 10,000 records sampled, 0 lost)",
        ),
        (
            5,
            1_000_000,
            False,
            "loss is 0.0005% (95 %: 0.000162% to 0.00117%; 1,000,000 records sampled, 5 lost)",
        ),
        (7, 7, False, "loss is 100% (95 %: 59% to 100%; 7 records sampled, 7 lost)"),
        (0, 500, True, "loss is 0% (census of 500 records, 0 lost)"),
        (1, 300, True, "loss is 0.333% (census of 300 records, 1 lost)"),
        (300, 300, True, "loss is 100% (census of 300 records, 300 lost)"),
        (0, 0, False, "loss is unknown: no record was compared"),
    ],
)
def test_statement_text(events: int, n: int, census: bool, expected: str) -> None:
    assert statement("loss", events, n, counted=f"{events} lost", census=census) == expected
