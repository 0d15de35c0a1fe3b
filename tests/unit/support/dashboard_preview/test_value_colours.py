"""Colours by threshold, by value mapping and by the number of a series."""

import math

import pytest
from dashboard_preview.grafana_json import FieldStyle, MappedRange, MappedValue, Step
from dashboard_preview.value_colours import of_series, on, shown

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


def test_lines_have_colours_of_classic_palette_in_turn() -> None:
    style = FieldStyle(mode="palette-classic")
    assert [of_series(style, n, 0.0) for n in range(3)] == ["#73BF69", "#F2CC0C", "#8AB8FF"]
    assert of_series(style, 10, 0.0) == "#73BF69"
    assert of_series(FieldStyle(mode="fixed", colour="#D55E00"), 4, 0.0) == "#D55E00"
    assert of_series(BUDGET, 0, 0.1) == "#E69F00"


def test_shown_value_in_mapped_range_has_its_text() -> None:
    spent = MappedRange("overspent", "#D55E00", -math.inf, -1e-9)
    style = FieldStyle(unit="percentunit", ranges=(spent,))
    assert shown(style, -3.4) == ("overspent", "#D55E00")
    assert shown(style, 0.0).text == "0%"


def test_text_colour_contrasts_with_background() -> None:
    assert (on("#D55E00"), on("#009E73"), on("#E69F00")) == ("#ffffff", "#ffffff", "#111217")
