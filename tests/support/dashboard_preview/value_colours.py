"""The text and the colour of a value, and the colour of a series."""

from typing import Final, NamedTuple

from dashboard_preview import grafana_units
from dashboard_preview.data_frames import Cell
from dashboard_preview.grafana_json import TEXT, FieldStyle

_CLASSIC: Final = (
    *("#73BF69", "#F2CC0C", "#8AB8FF", "#FF780A", "#F2495C"),
    *("#5794F2", "#B877D9", "#705DA0", "#37872D", "#FADE2A"),
)
"""The first colours of Grafana's classic palette in the dark theme:
grafana/packages/grafana-data/src/themes/createVisualizationColors.ts ."""
_BRIGHT: Final = 0.55


class Shown(NamedTuple):
    """The text of a value, and its colour in CSS."""

    text: str
    colour: str


def shown(style: FieldStyle, value: Cell) -> Shown:
    """*value* by its mapping, or in its unit with the colour of its threshold."""
    if value is None or value == "":
        return Shown(style.no_value, css(TEXT))
    if isinstance(value, str):
        return Shown(value, css(style.colour if style.mode == "fixed" else TEXT))
    mapped = style.mapped.get(f"{value:g}") or next(
        (each for each in style.ranges if each.start <= value <= each.end), None
    )
    if mapped is not None and mapped.colour is not None:
        return Shown(mapped.text, css(mapped.colour))
    text = (
        grafana_units.formatted(style.unit, value, style.decimals)
        if mapped is None
        else mapped.text
    )
    return Shown(text, by_value(style, value))


def by_value(style: FieldStyle, value: float) -> str:
    """The colour of *value*."""
    if style.mode != "thresholds":
        return css(style.colour)
    reached = style.steps[0].colour
    for step in style.steps[1:]:
        if step.bound is not None and value >= step.bound:
            reached = step.colour
    return css(reached)


def of_series(style: FieldStyle, number: int, last: float | None) -> str:
    """The colour of the line *number* of a chart."""
    if style.mode == "palette-classic":
        return _CLASSIC[number % len(_CLASSIC)]
    return by_value(style, last or 0.0)


def css(colour: str) -> str:
    """*colour* as CSS takes it; that of text is a variable of the page's style."""
    return "var(--text)" if colour == TEXT else colour


def on(colour: str) -> str:
    """The text colour on the background *colour*."""
    if not colour.startswith("#"):
        return "var(--panel)"
    red, green, blue = _parts(colour)
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < _BRIGHT else "#111217"


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return red, green, blue
