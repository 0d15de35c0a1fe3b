"""The text and the colour of a value, and the colour of a series."""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING, Final, NamedTuple

from dashboard_preview import grafana_units
from dashboard_preview.grafana_json.field_config import TEXT

if TYPE_CHECKING:
    from dashboard_preview.data_frames import Cell
    from dashboard_preview.grafana_json.field_config import FieldStyle

_SHADES: Final = 6
_SPIN: Final = 10.0
"""Degrees of hue between the first shade and the last one."""
_CHANGE: Final = 0.35
"""How much brighter or darker the last shade is."""
_BLUES: Final = (
    *("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6"),
    *("#4292c6", "#2171b5", "#08519c", "#08306b"),
)
"""ColorBrewer's, as in d3-scale-chromatic: https://colorbrewer2.org/#type=sequential ."""
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
    mapped = style.mapped.get(f"{value:g}")
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
    if style.mode == "shades":
        return _shade(style.colour, number)
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


def heat(share: float, *, dark: bool) -> str:
    """Of the scheme Blues: the least fades into the page; Grafana inverts it when dark."""
    place = min(max(1.0 - share if dark else share, 0.0), 1.0) * (len(_BLUES) - 1)
    below = min(int(place), len(_BLUES) - 2)
    parts = zip(_parts(_BLUES[below]), _parts(_BLUES[below + 1]), strict=True)
    red, green, blue = (low + (high - low) * (place - below) for low, high in parts)
    return _hex(red, green, blue)


def _shade(colour: str, number: int) -> str:
    """Grafana's "shades of a colour": brighter and darker ones in turn, with a little hue.

    grafana/packages/grafana-data/src/field/fieldColor.ts, getShadedColor.
    """
    number %= 2 * _SHADES - 1
    if not number:
        return colour
    far = ((number + 1) // 2) / _SHADES
    brighter = number % 2 == 1
    hue, light, saturation = colorsys.rgb_to_hls(*_parts(colour))
    hue = (hue + (far if brighter else -far) * _SPIN / 360) % 1.0
    if brighter:
        spun = colorsys.hls_to_rgb(hue, light, saturation)
        red, green, blue = (min(part + far * _CHANGE, 1.0) for part in spun)
    else:
        red, green, blue = colorsys.hls_to_rgb(hue, max(light - far * _CHANGE, 0.0), saturation)
    return _hex(red, green, blue)


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return red, green, blue


def _hex(red: float, green: float, blue: float) -> str:
    return "#" + "".join(f"{round(part * 255):02x}" for part in (red, green, blue))
