"""Figures for people: in fitting units, and never rounded to a better one."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_report.rendering import figures


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
def test_a_length(seconds: float | None, text: str) -> None:
    assert figures.length(seconds) == text


def test_a_latency_is_rounded_up_and_what_is_left_down() -> None:
    assert figures.length(2.61, up=True) == "2.7 s"
    assert figures.length(2.69) == "2.6 s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "n/a"), (0.0, "0"), (0.25, "0.25"), (0.004, "0.004"), (1.5, "1.5"), (1e6, "1,000,000")],
)
def test_a_count(value: float | None, text: str) -> None:
    assert figures.count(value) == text


@given(st.floats(0, 1e9, exclude_min=True))
def test_something_is_never_printed_as_nothing(value: float) -> None:
    assert figures.count(value) not in {"0", "0.0"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_plain_keeps_every_digit_and_has_no_exponent(value: float) -> None:
    text = figures.plain(value)
    assert float(text) == value
    assert "e" not in text.lower()


def test_plain_of_nothing_is_empty() -> None:
    assert [figures.plain(each) for each in (None, float("nan"), float("inf"))] == ["", "", ""]


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "n/a"), (0.0, "0x"), (0.004, "0.004x"), (14.44, "14.4x"), (1_000.4, "1,000x")],
)
def test_a_burn_rate(rate: float | None, text: str) -> None:
    assert figures.burn(rate) == text


def test_moments() -> None:
    at = 1_784_025_000_000
    assert figures.utc(at) == "2026-07-14T10:30:00Z"
    assert figures.utc(at + 41) == "2026-07-14T10:30:00.041Z"
    assert figures.moment(at, UTC) == "2026-07-14 10:30 UTC"
    assert figures.moment(at, ZoneInfo("Asia/Tokyo")) == "2026-07-14 19:30 JST"
    assert figures.day(at, UTC) == "14 Jul"
    assert figures.zone_of("UTC") is UTC
