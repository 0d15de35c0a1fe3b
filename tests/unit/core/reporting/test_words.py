"""Figures as people read them: nothing bad is printed as 100 %."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.reporting.words import share, signed_share


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0, "100 %"),
        (0.9995, "99.95 %"),
        (0.99999999, "99.999 %"),
        (0.9, "90 %"),
        (2 / 3, "66.666 %"),
        (0.0, "0 %"),
        (1e-7, "0.00001 %"),
        (None, "n/a"),
    ],
)
def test_a_share_of_good_events(ratio: float | None, text: str) -> None:
    assert share(ratio) == text


@given(st.integers(1, 10**9), st.integers(1, 10**12))
def test_nothing_prints_as_100_while_something_is_bad(bad: int, total: int) -> None:
    if bad < total:
        assert share(1 - bad / total) != "100 %"
        assert share((total - bad) / total) != "0 %"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.6123, "61.2 %"), (-1.4, "-140 %"), (-0.0004, "-0.1 %"), (0.0, "0 %"), (None, "n/a")],
)
def test_what_is_left_is_never_rounded_up(ratio: float | None, text: str) -> None:
    assert signed_share(ratio) == text
