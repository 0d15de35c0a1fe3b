"""Error budgets as bars and text."""

from zoneinfo import ZoneInfo

import pytest
from digest_samples import at

from mm2slo_report.digest.digest_message import (
    draw_bar,
    format_interval,
    format_trend,
)

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
def test_draw_bar_rounds_down(remaining: float | None, drawn: str) -> None:
    assert draw_bar(remaining) == drawn


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (0.5, 0.25, "▲ was 25 %"),
        (0.5, 0.75, "▼ was 75 %"),
        (-2.0, -1.4, "▼ was -140 %"),
        (0.50001, 0.50002, "unchanged"),
        (None, 0.5, "was 50 %"),
        (0.5, None, ""),
    ],
)
def test_format_trend_shows_the_previous_budget(
    now: float | None, before: float | None, expected: str
) -> None:
    assert format_trend(now, before) == expected


def test_format_interval_within_a_day_shows_the_date_once() -> None:
    start = at(2026, 7, 14, 8, 2)
    assert (
        format_interval(start, start + 29 * 60_000, BERLIN)
        == "2026-07-14 10:02 to 10:31 CEST (29 min)"
    )


def test_format_interval_over_clock_change_shows_both_offsets() -> None:
    start = at(2026, 10, 25, 0, 30)
    assert format_interval(start, start + 7_200_000, BERLIN) == (
        "2026-10-25 02:30 CEST to 2026-10-25 03:30 CET (2 h)"
    )
