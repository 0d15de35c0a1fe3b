"""Tables: columns after the transformations, rows in the panel's order."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from dashboard_preview.data_frames import Cell
from dashboard_preview.grafana_json.dashboard_json import Panel
from dashboard_preview.grafana_json.field_config import FieldStyle, FieldStyles
from dashboard_preview.interpolation import encoded
from dashboard_preview.markup import Markup, element
from dashboard_preview.panel_data import Data
from dashboard_preview.transformations import in_order
from dashboard_preview.value_colours import on, shown

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
