"""Colours by bounds, by words and by the number of a series."""

from __future__ import annotations

import pytest
from dashboard_preview.grafana_json.field_config import Look, Step, Word
from dashboard_preview.value_colours import heat, of_series, on, shown

BUDGET = Look(
    unit="percentunit",
    decimals=1,
    steps=(Step(None, "#D55E00"), Step(0.0, "#E69F00"), Step(0.25, "#009E73")),
    no_value="–",  # noqa: RUF001 - a dash, as people write it
)


@pytest.mark.parametrize(
    ("value", "text", "colour"),
    [
        (-0.5, "-50.0%", "#D55E00"),
        (0.0, "0.0%", "#E69F00"),
        (0.249, "24.9%", "#E69F00"),
        (0.25, "25.0%", "#009E73"),
        (None, "–", "var(--text)"),  # noqa: RUF001 - as above
        ("", "–", "var(--text)"),  # noqa: RUF001 - as above
        ("us->eu", "us->eu", "var(--text)"),
    ],
)
def test_the_last_bound_that_is_reached_gives_the_colour(
    value: float | str | None, text: str, colour: str
) -> None:
    assert shown(BUDGET, value) == (text, colour)


def test_a_word_stands_for_its_value_alone() -> None:
    look = Look(unit="short", words={"3": Word("stopped", "#D55E00"), "1": Word("idle", None)})
    assert shown(look, 3.0) == ("stopped", "#D55E00")
    assert shown(look, 1.0) == ("idle", "var(--text)")
    assert shown(look, 3.5) == ("3.5", "var(--text)")


def test_shades_get_brighter_and_darker_in_turn() -> None:
    look = Look(mode="shades", colour="#808080")
    # Grafana's steps: sixths of 35 per cent; grey has no hue to turn.
    assert [of_series(look, n, 0.0) for n in range(5)] == [
        "#808080", "#8f8f8f", "#717171", "#9e9e9e", "#626262",
    ]  # fmt: skip
    assert of_series(look, 11, 0.0) == "#808080"
    assert of_series(Look(mode="fixed", colour="#D55E00"), 4, 0.0) == "#D55E00"
    assert of_series(BUDGET, 0, 0.1) == "#E69F00"


def test_what_is_most_stands_out_of_the_page() -> None:
    assert (heat(0.0, dark=False), heat(1.0, dark=False)) == ("#f7fbff", "#08306b")
    assert (heat(0.0, dark=True), heat(1.0, dark=True)) == ("#08306b", "#f7fbff")
    assert heat(0.5, dark=True) == "#6baed6"


def test_words_are_read_on_their_colour() -> None:
    assert (on("#D55E00"), on("#009E73"), on("#E69F00")) == ("#ffffff", "#ffffff", "#111217")
