"""Colours by threshold, by value mapping and by the number of a series."""

from __future__ import annotations

import pytest
from dashboard_preview.grafana_json.field_config import FieldStyle, MappedValue, Step
from dashboard_preview.value_colours import heat, of_series, on, shown

BUDGET = FieldStyle(
    unit="percentunit",
    decimals=1,
    steps=(Step(None, "#D55E00"), Step(0.0, "#E69F00"), Step(0.25, "#009E73")),
    no_value="–",  # noqa: RUF001 - an en dash
)


@pytest.mark.parametrize(
    ("value", "text", "colour"),
    [
        (-0.5, "-50.0%", "#D55E00"),
        (0.0, "0.0%", "#E69F00"),
        (0.249, "24.9%", "#E69F00"),
        (0.25, "25.0%", "#009E73"),
        (None, "–", "var(--text)"),  # noqa: RUF001 - an en dash
        ("", "–", "var(--text)"),  # noqa: RUF001 - an en dash
        ("us->eu", "us->eu", "var(--text)"),
    ],
)
def test_shown_value_has_colour_of_last_threshold_reached(
    value: float | str | None, text: str, colour: str
) -> None:
    assert shown(BUDGET, value) == (text, colour)


def test_shown_mapped_value_has_its_text() -> None:
    style = FieldStyle(
        unit="short",
        mapped={"3": MappedValue("stopped", "#D55E00"), "1": MappedValue("idle", None)},
    )
    assert shown(style, 3.0) == ("stopped", "#D55E00")
    assert shown(style, 1.0) == ("idle", "var(--text)")
    assert shown(style, 3.5) == ("3.5", "var(--text)")


def test_shades_alternate_brighter_and_darker() -> None:
    style = FieldStyle(mode="shades", colour="#808080")
    # Grafana's steps: sixths of 35 per cent; grey has no hue to turn.
    assert [of_series(style, n, 0.0) for n in range(5)] == [
        "#808080", "#8f8f8f", "#717171", "#9e9e9e", "#626262",
    ]  # fmt: skip
    assert of_series(style, 11, 0.0) == "#808080"
    assert of_series(FieldStyle(mode="fixed", colour="#D55E00"), 4, 0.0) == "#D55E00"
    assert of_series(BUDGET, 0, 0.1) == "#E69F00"


def test_heat_contrasts_most_with_page() -> None:
    assert (heat(0.0, dark=False), heat(1.0, dark=False)) == ("#f7fbff", "#08306b")
    assert (heat(0.0, dark=True), heat(1.0, dark=True)) == ("#08306b", "#f7fbff")
    assert heat(0.5, dark=True) == "#6baed6"


def test_text_colour_contrasts_with_background() -> None:
    assert (on("#D55E00"), on("#009E73"), on("#E69F00")) == ("#ffffff", "#ffffff", "#111217")
