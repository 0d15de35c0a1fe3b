"""Horizontal bar gauges."""

from typing import Final

from dashboard_preview.grafana_json.field_config import FieldStyles
from dashboard_preview.markup import Markup, element
from dashboard_preview.panel_data import Data
from dashboard_preview.text_width import width
from dashboard_preview.value_colours import shown

_NAMES: Final = 0.45
"""Maximum share of the width for names."""
_LETTERS: Final = 14.0
_GAP: Final = 6.0
_HIGHEST: Final = 44.0


def bars(styles: FieldStyles, data: Data, size: tuple[float, float]) -> Markup:
    """The latest value of each series as a bar, on one scale."""
    values = [each.last or 0.0 for each in data.series]
    names = min(max(width(each.name, _LETTERS) for each in data.series) + 12, size[0] * _NAMES)
    high = min((size[1] - _GAP) / len(values) - _GAP, _HIGHEST)
    rows = []
    for series, value in zip(data.series, values, strict=True):
        style = styles.of(series.name)
        least = style.least if style.least is not None else min(0.0, *values)
        most = style.most if style.most is not None else max(values)
        share = (value - least) / (most - least) if most > least else 0.0
        figure = shown(style, value)
        bar = element(
            "i",
            style=f"width:{100 * min(max(share, 0.0), 1.0):.2f}%;border-color:{figure.colour};"
            f"background:color-mix(in srgb, {figure.colour} 40%, transparent)",
        )
        rows.append(
            element(
                "div",
                element("span", series.name, title=series.name, style=f"width:{names:.0f}px"),
                element("div", bar if share > 0 else "", class_="track"),
                element("b", figure.text, style=f"color:{figure.colour}"),
                style=f"height:{high:.0f}px",
            )
        )
    return element("div", *rows, class_="bars")
