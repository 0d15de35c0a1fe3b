"""Stat panels: large single values."""

from math import ceil
from typing import Final, NamedTuple

from dashboard_preview.grafana_json.dashboard_json import Panel
from dashboard_preview.grafana_json.field_config import FieldStyles
from dashboard_preview.markup import Markup, element
from dashboard_preview.panel_data import Data
from dashboard_preview.text_width import shortened, width
from dashboard_preview.value_colours import on, shown

_LARGEST: Final = 54.0
_SMALLEST: Final = 14.0
_LARGEST_NAME: Final = 20.0
_SMALLEST_NAME: Final = 11.0
_INSIDE: Final = 20.0
_GAP: Final = 8.0
_LINE: Final = 1.3
_BOLDER: Final = 1.06


def stat(panel: Panel, styles: FieldStyles, data: Data, size: tuple[float, float]) -> Markup:
    """The latest value of each series, in the grid with the largest letters."""
    named = panel.options["textMode"] == "value_and_name"
    filled = panel.options["colorMode"] == "background"
    figures = [shown(styles.of(each.name), each.last) for each in data.series]
    # All values of a panel have the size of the longest one.
    text = max((each.text for each in figures), key=width)
    name = max((each.name for each in data.series), key=width) if named else ""
    fits = (
        _fitting(text, name, size, across, len(figures)) for across in range(1, len(figures) + 1)
    )
    best = max(fits, key=lambda each: (each.figure + each.name, -each.across))
    room = size[0] / best.across - _INSIDE
    boxes = []
    for series, figure in zip(data.series, figures, strict=True):
        parts = [element("b", figure.text, style=f"font-size:{best.figure:.0f}px")]
        if named:
            shorter = shortened(series.name, room, best.name)
            style = f"font-size:{best.name:.0f}px"
            parts.insert(0, element("span", shorter, title=series.name, style=style))
        ink = (
            f"background:{figure.colour};color:{on(figure.colour)}"
            if filled
            else f"color:{figure.colour}"
        )
        boxes.append(element("div", *parts, style=ink))
    return element(
        "div",
        *boxes,
        class_="stat alone" if len(boxes) == 1 else "stat",
        style=f"grid-template-columns:repeat({best.across},1fr)",
    )


class _Fit(NamedTuple):
    """The number of values in a row, and the letter sizes that fit."""

    across: int
    figure: float
    name: float


def _fitting(text: str, name: str, size: tuple[float, float], across: int, count: int) -> _Fit:
    """The sizes for *count* values, *across* in a row, with the longest *text* and *name*."""
    wide = (size[0] / across - _INSIDE) / _BOLDER
    high = size[1] / ceil(count / across) - _GAP
    above = min(wide / width(name, 1.0), _LARGEST_NAME, high / 3) if name else 0.0
    figure = min(wide / max(width(text, 1.0), 0.1), (high - above) / _LINE, _LARGEST)
    return _Fit(across, max(figure, _SMALLEST), max(above, _SMALLEST_NAME))
