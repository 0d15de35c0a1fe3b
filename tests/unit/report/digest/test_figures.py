"""Figures in words and bars."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from digests import at

from mm2slo_report.digest.figures import bar, spent, stretch, trend

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("remaining", "drawn"),
    [
        (1.0, "██████████"),
        (0.999999, "█████████▉"),
        (0.612, "██████░░░░"),
        (0.65, "██████▌░░░"),
        (0.1, "█░░░░░░░░░"),
        (0.00001, "▏░░░░░░░░░"),
        (0.0, "░░░░░░░░░░"),
        (-1.4, "░░░░░░░░░░"),
        (None, "··········"),
    ],
)
def test_a_bar_is_never_fuller_than_its_budget(remaining: float | None, drawn: str) -> None:
    assert bar(remaining) == drawn


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (0.5, 0.25, "▲ was 25 %"),
        (0.5, 0.75, "▼ was 75 %"),
        (-2.0, -1.4, "▼ was -140 %"),
        (0.50001, 0.50002, "as before"),
        (None, 0.5, "was 50 %"),
        (0.5, None, ""),
    ],
)
def test_a_trend_says_what_was(now: float | None, before: float | None, words: str) -> None:
    assert trend(now, before) == words


def test_a_little_is_not_nothing() -> None:
    assert [spent(each) for each in (0.0, 0.0004, 0.001, 0.72, 2.4)] == [
        *("0 %", "<0.1 %", "0.1 %", "72 %", "240 %")
    ]


def test_a_stretch_of_one_day_names_the_day_once() -> None:
    start = at(2026, 7, 14, 8, 2)
    assert stretch(start, start + 29 * 60_000, BERLIN) == "2026-07-14 10:02 to 10:31 CEST (29 min)"


def test_a_stretch_over_a_change_of_the_clocks_names_both_offsets() -> None:
    start = at(2026, 10, 25, 0, 30)
    assert stretch(start, start + 7_200_000, BERLIN) == (
        "2026-10-25 02:30 CEST to 2026-10-25 03:30 CET (2 h)"
    )
