"""An hour's totals come back from their bytes, which are few."""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.reporting.minute_counts import Tally
from mm2slo_store.sli_history.packing import (
    growth,
    growths_of,
    packed,
    total_after,
    totals_after,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BASE = Tally(1_000_000, 1_000_100, 7)


def totals(growths: Sequence[tuple[float, float, float]], base: Tally = BASE) -> list[Tally]:
    """After each of the growths: good, bad, unknown."""
    columns = (accumulate(each) for each in zip(*growths, strict=True))
    return [
        Tally(base.good + good, base.total + good + bad, base.unknown + unknown)
        for good, bad, unknown in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize(
    ("growth", "size"),
    [
        pytest.param(lambda _: (0, 0, 0), 4, id="nothing grows"),
        pytest.param(lambda _: (60, 0, 0), 5, id="the same each minute"),
        pytest.param(lambda n: (59 + n % 3, 0, 0), 64, id="bytes"),
        pytest.param(lambda n: (59 + n % 3, n % 2, 0), 124, id="bytes, of two columns"),
        pytest.param(lambda n: (1_000 + n, 0, 0), 124, id="two bytes each"),
        pytest.param(lambda n: (100_000 + n, 0, 0), 244, id="four bytes each"),
        pytest.param(lambda n: (5_000_000_000 + n, 0, 0), 484, id="eight bytes each"),
        pytest.param(lambda n: (n / 2, 0, 0), 64, id="averages of two replicas"),
        pytest.param(lambda n: (n / 3, 1 / 3, 0), 65, id="averages of three"),
        pytest.param(lambda n: (n * 0.123456789, 0, 0), 1441, id="no fraction: as they are"),
        pytest.param(lambda _: (1e30, 0, 0), 1441, id="beyond whole numbers: as they are"),
    ],
)
def test_packed_hour_is_small(
    growth: Callable[[int], tuple[float, float, float]], size: int
) -> None:
    given_totals = totals([growth(number) for number in range(60)])
    growths = packed(BASE, given_totals)
    assert len(growths) == size
    found = totals_after(growths, BASE, 60)
    assert [pytest.approx(each, abs=1e-6) for each in given_totals] == found
    assert [total_after(growths, BASE, 60, count) for count in range(61)] == [BASE, *found]


WHOLE = st.integers(-(2**20), 2**40)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.tuples(WHOLE, WHOLE, WHOLE),
    st.lists(st.tuples(WHOLE, WHOLE, WHOLE), min_size=1, max_size=60),
    st.sampled_from([1, 2, 4, 5, 8, 10]),
)
def test_packed_averages_are_restored(
    base: tuple[int, int, int], events: list[tuple[int, int, int]], replicas: int
) -> None:
    started = Tally(*(each / replicas for each in base))
    each_total = [Tally(*(one / replicas for one in each)) for each in events]
    growths = packed(started, each_total)
    found = totals_after(growths, started, len(events))
    # Tenths are not exact: they are stored to a millionth.
    assert found == [pytest.approx(each, rel=1e-15, abs=2e-7) for each in each_total]
    added = list(zip(*growths_of(growths, started, len(events)), strict=True))
    if replicas in {1, 2, 4, 8}:
        assert found == each_total
        assert added == [growth(one, other) for one, other in pairwise((started, *each_total))]
    assert list(map(sum, zip(*added, strict=True))) == pytest.approx(
        [now - before for now, before in zip(each_total[-1], started, strict=True)], abs=1e-3
    )


@given(st.lists(st.tuples(FINITE, FINITE, FINITE), min_size=1, max_size=60))
def test_packed_numbers_are_restored(values: list[tuple[float, float, float]]) -> None:
    each_total = [Tally(*each) for each in values]
    found = totals_after(packed(Tally(), each_total), Tally(), len(values))
    assert found == [pytest.approx(each, rel=1e-15, abs=2e-7) for each in each_total]


def test_packed_format_is_stable() -> None:
    """Stores outlive versions: these bytes must be read for ever."""
    base = Tally(10, 10, 0)
    halves = [Tally(10.5, 10.5, 0), Tally(12, 13, 0), Tally(312, 313, 0)]
    written = b"\x02" + b"\x02" + struct.pack("<3H", 1, 5, 600) + b"\x01\x00\x02\x00" + b"\x00"
    assert packed(base, halves) == written
    assert totals_after(written, base, 3) == halves
    equal = b"\x01" + b"\x11\x3c" + b"\x00" + b"\x00"
    assert packed(base, [Tally(70, 70), Tally(130, 130)]) == equal
    exact = [Tally(0.1, 0.7, 1e-3)]
    assert packed(Tally(), exact) == b"\x00" + struct.pack("<3d", 0.1, 0.7, 1e-3)
