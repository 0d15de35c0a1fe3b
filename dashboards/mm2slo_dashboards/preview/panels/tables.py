"""Tables: columns as the transformations left them, rows in the order that the panel asks for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_dashboards.preview.colouring import on, shown
from mm2slo_dashboards.preview.interpolation import encoded
from mm2slo_dashboards.preview.markup import Markup, element
from mm2slo_dashboards.preview.transforming import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_dashboards.preview.answering import Data
    from mm2slo_dashboards.preview.frames import Cell
    from mm2slo_dashboards.preview.reading.dashboard import Panel
    from mm2slo_dashboards.preview.reading.look import Look, Looks

_FIELD: Final = re.compile(r"\$\{__data\.fields\.(?P<name>[^:}]+)(?P<encoded>:percentencode)?\}")


def table(panel: Panel, looks: Looks, data: Data, leading: Callable[[str, str], Markup]) -> Markup:
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
                _cell(row[column.name], looks.of(column.name), row, leading, aligned)
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
    look: Look,
    row: Mapping[str, Cell],
    leading: Callable[[str, str], Markup],
    aligned: str | None,
) -> Markup:
    figure = shown(look, cell)
    text: str = figure.text
    if look.links and cell not in (None, ""):
        text = leading(figure.text, _filled(look.links[0].url, row))
    style = None
    if cell is not None and look.cell == "color-text":
        style = f"color:{figure.colour}"
    elif cell is not None and look.cell == "color-background":
        style = f"background:{figure.colour};color:{on(figure.colour)}"
    return element("td", text, class_=aligned, style=style, title=figure.text)


def _filled(url: str, row: Mapping[str, Cell]) -> str:
    """*url* with the cells of the row that it names."""

    def filled(found: re.Match[str]) -> str:
        value = str(row.get(found["name"], ""))
        return encoded(value) if found["encoded"] else value

    return _FIELD.sub(filled, url)


def _alignment(cells: tuple[Cell, ...]) -> str | None:
    """Figures stand at the right, as in Grafana."""
    known = [each for each in cells if each is not None]
    return "figure" if known and all(isinstance(each, float) for each in known) else None
