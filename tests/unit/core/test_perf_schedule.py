"""The order of runs, the search for a rate, factors of a matrix."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.perf.perf_schedule import (
    FACTORS,
    PRECISION,
    PerfCell,
    PerfLoad,
    PerfMode,
    RateSearch,
    backlog_growth,
    blocks,
    expected_seconds,
    factor_cell,
    is_settled,
    sustains,
)
from mm2slo_core.user_errors import UserError

BASE = PerfCell("base", PerfLoad())
OTHER = PerfCell("other", PerfLoad())


def test_two_cells_alternate_as_abba() -> None:
    order = [each.name for block in blocks([BASE, OTHER], 4) for each in block]
    assert order == ["base", "other", "other", "base", "base", "other", "other", "base"]


def test_each_block_has_each_cell_once() -> None:
    cells = [PerfCell(str(number), PerfLoad()) for number in range(5)]
    for block in blocks(cells, 3):
        assert Counter(each.name for each in block) == Counter("01234")


@given(st.floats(10, 1e6), st.floats(0.05, 20), st.floats(10, 1e7))
def test_search_ends_within_its_precision_of_the_highest_rate(
    highest: float, error: float, limit: float
) -> None:
    search = RateSearch(highest * error, limit)
    tried = 0
    while not search.is_over:
        assert search.next_rate <= limit
        search.learn(sustained=search.next_rate <= highest)
        tried += 1
        assert tried < 80
    assert search.found <= highest
    is_hopeless = highest < 1.5 * min(highest * error, limit) / 20
    assert search.found >= min(highest / PRECISION, limit) * 0.99 or highest <= 1 or is_hopeless


def test_one_failure_is_tried_again() -> None:
    search = RateSearch(1000, 1e9)
    search.learn(sustained=False)
    assert search.next_rate == 1000
    search.learn(sustained=True)
    assert (search.found, search.is_over) == (1000, False)


def test_nothing_is_found_where_no_rate_is_sustained() -> None:
    search = RateSearch(1000, 1e9)
    while not search.is_over:
        search.learn(sustained=False)
    assert search.found == 0


def test_rate_is_sustained_if_all_arrives_in_time() -> None:
    assert sustains(1000, 981, 0.5, 1.0)
    assert not sustains(1000, 979, 0.5, 1.0)
    assert not sustains(1000, 1000, 1.1, 1.0)
    assert not sustains(1000, 1000, None, 1.0)


def test_backlog_grows_if_more_is_missing_than_batches_explain() -> None:
    load = PerfLoad(rate=1000, seconds=10)
    assert backlog_growth(load, 10_000, 9_801) == 0
    assert backlog_growth(load, 10_000, 9_700) == 300
    assert backlog_growth(PerfLoad(rate=1000, seconds=100), 100_000, 98_100) == 0


def test_warm_up_is_over_when_two_windows_agree() -> None:
    assert is_settled(0.100, 0.109)
    assert not is_settled(0.100, 0.112)
    assert is_settled(0.0010, 0.0019)
    assert not is_settled(None, 0.1)
    assert not is_settled(0.1, None)


@pytest.mark.parametrize("name", FACTORS)
def test_factor_is_a_property_of_the_flow(name: str) -> None:
    cell = factor_cell(BASE, name, "7", "us->eu")
    ((key, value),) = cell.properties.items()
    assert (value, cell.name) == ("7", f"{name}=7")
    assert "{" not in key


def test_factors_of_the_load() -> None:
    assert factor_cell(BASE, "partitions", "10", "us->eu").load.partitions == 10
    assert factor_cell(BASE, "record-size", "10", "us->eu").load.record_size == 10
    assert factor_cell(BASE, "rate", "1.5", "us->eu").load.rate == 1.5
    assert factor_cell(BASE, "round-trip", "0", "us->eu").round_trip_ms == 0
    assert factor_cell(BASE, "tasks", "4", "us->eu").tasks == 4


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("colour", "1", "is not known; expected one of tasks"),
        ("partitions", "0", "expected a number from 1 to 1000"),
        ("partitions", "0.5", "expected a number from 1 to 1000"),
        ("partitions", "nan", "expected a number from 1 to 1000"),
        ("record-size", "5000000", "expected a number from 1 to 1e+06"),
        ("rate", "many", "expected a number from 0.1 to 1e+09"),
        ("rate", "nan", "expected a number from 0.1 to 1e+09"),
        ("round-trip", "-1", "expected a number from 0 to 2000"),
        ("linger", "", "expected a value"),
    ],
)
def test_bad_factor_is_refused(name: str, value: str, text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text)):
        factor_cell(BASE, name, value, "us->eu")


def test_duration_grows_with_cells_and_repeats() -> None:
    drain = PerfCell("drain", PerfLoad(mode=PerfMode.DRAIN))
    assert expected_seconds([BASE], 2) == 2 * expected_seconds([BASE], 1)
    assert expected_seconds([BASE, drain], 1) > expected_seconds([BASE], 1)
