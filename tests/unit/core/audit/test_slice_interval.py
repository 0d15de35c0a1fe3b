"""Bounds from slices contain the true rate in 95 % of samples, however losses are distributed."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING

import pytest

from mm2slo_core.audit.confidence_bounds import (
    clopper_pearson,
    slice_interval,
    statement,
)
from mm2slo_core.audit.record_sample import Sample, SampleBy
from mm2slo_core.audit.source_slices import OffsetRange, plan_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH, SLICES, SAMPLES = 100, 30, 1_000
TOTAL = SLICES * LENGTH * 20
"""A sample draws a twentieth."""


def scattered(rate: float) -> list[bool]:
    draw = random.Random(1)
    return [draw.random() < rate for _ in range(TOTAL)]


def bursts(number: int, length: int) -> list[bool]:
    draw, lost = random.Random(2), [False] * TOTAL
    for _ in range(number):
        start = draw.randrange(TOTAL - length)
        lost[start : start + length] = [True] * length
    return lost


def until(share: float, rate: float) -> list[bool]:
    """A change: records are lost at *rate* in the first *share* of the window, then none."""
    return [lost and number < share * TOTAL for number, lost in enumerate(scattered(rate))]


def samples(lost: list[bool]) -> Iterator[tuple[int, int]]:
    """Losses and records of each sample of 30 slices."""
    before = [0, *accumulate(lost)]
    for salt in range(SAMPLES):
        sample = Sample(0.05, salt, SampleBy.SLICES, LENGTH)
        drawn = plan_slices("orders", [OffsetRange(0, 0, TOTAL)], 1.0, sample)
        assert len({each.number for each in drawn}) == SLICES
        yield (
            sum(before[each.end] - before[each.start] for each in drawn),
            sum(each.end - each.start for each in drawn),
        )


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(scattered(0.0), id="none"),
        pytest.param(scattered(0.001), id="few scattered"),
        pytest.param(scattered(0.2), id="many scattered"),
        pytest.param(bursts(1, 600), id="one burst"),
        pytest.param(bursts(10, 10), id="short bursts"),
        pytest.param(bursts(10, 300), id="bursts of slices"),
        pytest.param(bursts(60, 400), id="many bursts"),
        pytest.param(
            [a or b for a, b in zip(scattered(0.01), bursts(2, 900), strict=True)], id="both"
        ),
        pytest.param(until(0.95, 0.4), id="until a change"),
        pytest.param(scattered(1.0), id="all"),
    ],
)
def test_slice_interval_of_1000_samples_contains_the_true_rate_in_95_percent(
    lost: list[bool],
) -> None:
    true = sum(lost) / TOTAL
    found = [slice_interval(*counts, SLICES) for counts in samples(lost)]
    assert sum(each.contains(true) for each in found) >= 0.95 * SAMPLES


def test_interval_as_if_each_record_was_drawn_alone_misses_a_burst() -> None:
    lost = bursts(1, 600)
    found = [clopper_pearson(*counts) for counts in samples(lost)]
    assert sum(each.contains(sum(lost) / TOTAL) for each in found) < 0.5 * SAMPLES


def test_slice_interval_counts_slices_not_records() -> None:
    assert slice_interval(0, 1_000_000, 30) == clopper_pearson(0, 30)
    assert slice_interval(100_000, 1_000_000, 30) == clopper_pearson(3, 30)
    found = slice_interval(110_000, 1_000_000, 30)
    assert (found.lower, found.upper) == (
        clopper_pearson(3, 30).lower,
        clopper_pearson(4, 30).upper,
    )


def test_statement_of_slices_names_records_and_slices() -> None:
    text = statement("loss", 10, 100_000, counted="10 lost", census=True, slices=60)
    assert text == "loss is 0.01% (95 %: 0% to 8.94%; 100,000 records in 60 slices, 10 lost)"
