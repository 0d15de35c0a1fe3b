"""Percentages as text."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.error_budget import Budget, Counts
from mm2slo_core.objectives.objective import DAY
from mm2slo_core.quantity_text import share_text, signed_share_text


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
def test_share_is_rounded_down(ratio: float | None, text: str) -> None:
    assert share_text(ratio) == text


@given(st.integers(1, 10**9), st.integers(1, 10**12))
def test_share_below_one_is_never_100_percent(bad: int, total: int) -> None:
    if bad < total:
        assert share_text(1 - bad / total) != "100 %"
        assert share_text((total - bad) / total) != "0 %"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.6123, "61.2 %"), (-1.4, "-140 %"), (-0.0004, "-0.1 %"), (0.0, "0 %"), (None, "n/a")],
)
def test_signed_share_is_rounded_down(ratio: float | None, text: str) -> None:
    assert signed_share_text(ratio) == text


@given(st.integers(0, 3000), st.sampled_from([0.9, 0.95, 0.99, 0.999, 0.9999]))
def test_signed_share_has_no_binary_rounding_error(tenths: int, target: float) -> None:
    """Tenths of a percent of the budget of ten million events are spent."""
    events = 10_000_000
    bad = round(tenths / 1000 * (1 - target) * events)
    left = Budget(target=target, window=DAY, measured=DAY, counts=Counts(bad, events)).remaining
    assert signed_share_text(left) == f"{(Decimal(1000 - tenths) / 10).normalize():f} %"
