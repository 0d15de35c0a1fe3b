"""Values as text: in fitting units, never rounded to a better one."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_report.rendering import report_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "n/a"),
        (0.0, "0 s"),
        (0.126, "126 ms"),
        (59.97, "59.9 s"),
        (60.0, "1 min"),
        (203.25 * 60, "3.3 h"),
        (36 * 3600.0, "36 h"),
        (3 * 86_400.0, "3 d"),
        (1_000 * 86_400.0, "1,000 d"),
        (-12.31 * 60, "-12.4 min"),
        (-0.6, "-600 ms"),
    ],
)
def test_length_uses_fitting_unit(seconds: float | None, text: str) -> None:
    assert report_text.duration_text(seconds) == text


def test_length_rounds_down_by_default_and_up_for_latency() -> None:
    assert report_text.duration_text(2.61, up=True) == "2.7 s"
    assert report_text.duration_text(2.69) == "2.6 s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "n/a"), (0.0, "0"), (0.25, "0.25"), (0.004, "0.004"), (1.5, "1.5"), (1e6, "1,000,000")],
)
def test_count_text(value: float | None, text: str) -> None:
    assert report_text.count_text(value) == text


@given(st.floats(0, 1e9, exclude_min=True))
def test_positive_count_is_never_shown_as_zero(value: float) -> None:
    assert report_text.count_text(value) not in {"0", "0.0"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_plain_keeps_every_digit_and_has_no_exponent(value: float) -> None:
    text = report_text.every_digit(value)
    assert float(text) == value
    assert "e" not in text.lower()


def test_plain_of_unknown_value_is_empty() -> None:
    assert [report_text.every_digit(each) for each in (None, float("nan"), float("inf"))] == [
        "",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "n/a"), (0.0, "0x"), (0.004, "0.004x"), (14.44, "14.4x"), (1_000.4, "1,000x")],
)
def test_burn_rate_text(rate: float | None, text: str) -> None:
    assert report_text.burn_rate_text(rate) == text


def test_instants_as_text() -> None:
    at = 1_784_025_000_000
    assert utc_text(at) == "2026-07-14T10:30:00Z"
    assert utc_text(at + 41) == "2026-07-14T10:30:00.041Z"
    assert report_text.moment_text(at, UTC) == "2026-07-14 10:30 UTC"
    assert report_text.moment_text(at, ZoneInfo("Asia/Tokyo")) == "2026-07-14 19:30 JST"
    assert report_text.day_text(at, UTC) == "14 Jul"
    assert report_text.zone_of("UTC") is UTC
