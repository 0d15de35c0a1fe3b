"""Percentages as text."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.error_budget import Budget, Counts
from mm2slo_core.objectives.objective import DAY
from mm2slo_core.quantity_text import share_text, signed_share_text, spent_share_text


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


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "0 %"),
        (0.00041, "0.05 %"),
        (0.28777, "28.8 %"),
        (0.72, "72 %"),
        (0.9996, "99.96 %"),
        (1.0, "100 %"),
        (1.0002, "100.1 %"),
        (6.448, "644.8 %"),
        (None, "n/a"),
    ],
)
def test_spent_share_is_rounded_up_and_100_percent_only_for_a_whole_budget(
    ratio: float | None, text: str
) -> None:
    assert spent_share_text(ratio) == text


@given(st.integers(0, 3000), st.sampled_from([0.9, 0.95, 0.99, 0.999, 0.9999]))
def test_shares_of_a_budget_have_no_binary_rounding_error(tenths: int, target: float) -> None:
    """Tenths of a percent of the budget of ten million events are spent."""
    events = 10_000_000
    bad = round(tenths / 1000 * (1 - target) * events)
    budget = Budget(target=target, window=DAY, measured=DAY, counts=Counts(bad, events))
    left, spent = (f"{(Decimal(each) / 10).normalize():f} %" for each in (1000 - tenths, tenths))
    assert (signed_share_text(budget.remaining), spent_share_text(budget.consumed)) == (left, spent)
