"""The inside of a panel: its data, or its text for no data."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from dashboard_preview.data_frames import Cell, in_order
from dashboard_preview.grafana_json import FieldStyle, FieldStyles, Panel
from dashboard_preview.interpolation import encoded
from dashboard_preview.markup import Markup, element, shortened, width
from dashboard_preview.panel_data import Data, Mark
from dashboard_preview.panels.line_charts import chart
from dashboard_preview.panels.timelines import timeline
from dashboard_preview.value_colours import on, shown

Size = tuple[float, float]


class Around(NamedTuple):
    """What panels get from their dashboard: annotations, and a function that makes links."""

    marks: Sequence[Mark]
    leading: Callable[[str, str], Markup]


def drawn(panel: Panel, styles: FieldStyles, data: Data, around: Around, size: Size) -> Markup:
    """The inside of *panel*, *size* pixels wide and high."""
    if not data.series and not data.table.length:
        return element("div", styles.defaults.no_value or "No data", class_="nothing")
    return _KINDS[panel.kind](panel, styles, data, around, size)


_KINDS: Final[Mapping[str, Callable[[Panel, FieldStyles, Data, Around, Size], Markup]]] = {
    "stat": lambda panel, styles, data, _, size: stat(panel, styles, data, size),
    "bargauge": lambda _, styles, data, __, size: bars(styles, data, size),
    "table": lambda panel, styles, data, around, _: table(panel, styles, data, around.leading),
    "timeseries": lambda panel, styles, data, around, size: chart(
        panel, styles, data, around.marks, size
    ),
    "state-timeline": lambda panel, styles, data, around, size: timeline(
        panel, styles, data, around.marks, size
    ),
}


_LARGEST: Final = 54.0
_SMALLEST: Final = 14.0
_LARGEST_NAME: Final = 20.0
_SMALLEST_NAME: Final = 11.0
_INSIDE: Final = 20.0
_STAT_GAP: Final = 8.0
_LINE_SHARE: Final = 1.3
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
    high = size[1] / ceil(count / across) - _STAT_GAP
    above = min(wide / width(name, 1.0), _LARGEST_NAME, high / 3) if name else 0.0
    figure = min(wide / max(width(text, 1.0), 0.1), (high - above) / _LINE_SHARE, _LARGEST)
    return _Fit(across, max(figure, _SMALLEST), max(above, _SMALLEST_NAME))


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


_FIELD: Final = re.compile(r"\$\{__data\.fields\.(?P<name>[^:}]+)(?P<encoded>:percentencode)?\}")


def table(
    panel: Panel, styles: FieldStyles, data: Data, leading: Callable[[str, str], Markup]
) -> Markup:
    """The rows of *data*; *leading* makes a link of a text and an address."""
    rows = in_order(data.table, panel.options.get("sortBy", ()))
    alignments = [_alignment(column.cells) for column in rows.columns]
    head = [
        element("th", column.name, class_=aligned)
        for column, aligned in zip(rows.columns, alignments, strict=True)
    ]
    body = [
        element(
            "tr",
            *(
                _cell(row[column.name], styles.of(column.name), row, leading, aligned)
                for column, aligned in zip(rows.columns, alignments, strict=True)
            ),
        )
        for row in rows.rows
    ]
    return element(
        "div",
        element("table", element("thead", element("tr", *head)), element("tbody", *body)),
        class_="table",
    )


def _cell(
    cell: Cell,
    style: FieldStyle,
    row: Mapping[str, Cell],
    leading: Callable[[str, str], Markup],
    aligned: str | None,
) -> Markup:
    figure = shown(style, cell)
    text: str = figure.text
    if style.links and cell not in (None, ""):
        text = leading(figure.text, _filled(style.links[0].url, row))
    css = None
    if cell is not None and style.cell == "color-text":
        css = f"color:{figure.colour}"
    elif cell is not None and style.cell == "color-background":
        css = f"background:{figure.colour};color:{on(figure.colour)}"
    return element("td", text, class_=aligned, style=css, title=figure.text)


def _filled(url: str, row: Mapping[str, Cell]) -> str:
    """*url* with the values of cells that it names."""

    def filled(found: re.Match[str]) -> str:
        value = str(row.get(found["name"], ""))
        return encoded(value) if found["encoded"] else value

    return _FIELD.sub(filled, url)


def _alignment(cells: tuple[Cell, ...]) -> str | None:
    """Numbers are aligned right, as in Grafana."""
    known = [each for each in cells if each is not None]
    return "figure" if known and all(isinstance(each, float) for each in known) else None
