"""Draws a dashboard from a Prometheus as one HTML file without scripts or external resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Final, NamedTuple

from dashboard_preview.grafana_json import ROW, Dashboard, Panel, Place
from dashboard_preview.grafana_units import SECONDS, formatted
from dashboard_preview.interpolation import ALL, interpolate
from dashboard_preview.markup import Markup, element, together, width
from dashboard_preview.panel_data import Context, Data, Mark, answered, marks
from dashboard_preview.panels.panel_body import Around, drawn
from dashboard_preview.prometheus_api import Prometheus, query_label_values
from dashboard_preview.time_range import Span

WIDTH: Final = 1440
"""Pixels of the page, for the 24 columns of Grafana's grid."""
_SIDE: Final = 16.0
_GAP: Final = 8.0
_LINE: Final = 30.0
_COLUMN: Final = (WIDTH - 2 * _SIDE - 23 * _GAP) / 24
_HEADER: Final = 88.0
_FOOTER: Final = 30.0
_TITLE: Final = 20.0
_BOLDER: Final = 1.06
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The content of a page: a dashboard, its variables, the data of each panel, the annotations.

    `others` are the dashboards to link to: titles by uid.
    """

    board: Dashboard
    context: Context
    data: Mapping[int, Data]
    marks: Sequence[Mark]
    others: Mapping[str, str]


def plot_width(panel: Panel) -> float:
    """Pixels of a panel's inside; Grafana requests as many points."""
    return _size(panel.place)[0] - 2 * _GAP


def down_to(line: int) -> float:
    """The start of *line* in Grafana's grid, in pixels from the top of the page."""
    return _HEADER + line * (_LINE + _GAP)


class Page(NamedTuple):
    """A drawn dashboard, and its height in pixels."""

    html: str
    height: int


def page(shown: Shown) -> Page:
    board = shown.board
    lowest = max((each.place.y + each.place.h for each in board.panels), default=0)
    high = down_to(lowest) - _HEADER + _GAP
    body = together(
        (
            _header(shown),
            element(
                "main",
                *(_panel(number, each, shown) for number, each in enumerate(board.panels)),
                style=f"height:{high:.0f}px",
            ),
            element("footer", "Drawn from the generated dashboard JSON, without Grafana."),
        )
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content=f"width={WIDTH}"),
        element("link", rel="icon", href="data:,"),
        element("title", board.title),
        element("style", Markup(_style())),
    )
    # The grid has a fixed width, as its drawings do.
    inner = element("body", body, style=f"width:{WIDTH}px")
    html = element("html", head, inner, lang="en")
    return Page(f"<!DOCTYPE html>\n{html}\n", round(_HEADER + high + _FOOTER))


def _header(shown: Shown) -> Markup:
    board, span = shown.board, shown.context.span
    start, end = (datetime.fromtimestamp(at, UTC) for at in (span.start, span.end))
    chips = (
        element("li", element("b", each.title), element("span", _chosen(each.name, shown)))
        for each in board.variables
    )
    links = [
        element("a", title, href=f"{uid}.html")
        for uid, title in shown.others.items()
        if uid != board.uid
    ]
    own = [_leading(shown, one.title, one.url) for one in board.links]
    return element(
        "header",
        element("time", f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"),
        element("h1", board.title),
        element("p", board.description),
        element("ul", *chips, element("nav", *links, *own)),
    )


def _chosen(name: str, shown: Shown) -> str:
    values = shown.context.choices[name]
    return "All" if list(values) == [ALL] else " + ".join(values) or "None"


def _panel(number: int, panel: Panel, shown: Shown) -> Markup:
    place = panel.place
    wide, high = _size(place)
    left, top = place.x * (_COLUMN + _GAP), place.y * (_LINE + _GAP)
    where = f"left:{left:.1f}px;top:{top:.0f}px;width:{wide:.1f}px;height:{high:.0f}px"
    if panel.kind == ROW or panel.styles is None:
        return element("h2", panel.title, style=where)
    lines = ceil(width(panel.title, 14) * _BOLDER / (wide - 46))
    above = 10 + _TITLE * lines
    size = (wide - 2 * _GAP - 2, high - above - 8)

    def leading(text: str, url: str) -> Markup:
        return _leading(shown, text, url)

    about = element(
        "details",
        element("summary", "i", title=panel.description),
        element(
            "div",
            panel.description,
            *(leading(each.title, each.url) for each in panel.links),
        ),
    )
    return element(
        "section",
        element("h3", panel.title, *_own_time(panel)),
        about,
        element(
            "div",
            drawn(
                panel,
                panel.styles,
                shown.data[number],
                Around(shown.marks, leading),
                size,
            ),
            class_="body",
            style=f"top:{above:.0f}px",
        ),
        style=where,
        data_kind=panel.kind,
        aria_label=panel.title,
    )


def _own_time(panel: Panel) -> tuple[Markup, ...]:
    """Grafana's note beside the title of a panel with its own time range."""
    if not panel.last:
        return ()
    return (element("small", f"Last {formatted(SECONDS, panel.last)}"),)


def _leading(shown: Shown, text: str, url: str) -> Markup:
    """A link to the file of a drawn dashboard, or to an external address; else plain text."""
    filled = shown.context.filled(url, 1.0)
    uid = filled.partition("?")[0].removeprefix("/d/")
    if filled.startswith("/d/") and uid in shown.others:
        return element("a", text, href=f"{uid}.html", title=filled)
    if filled.startswith(("https://", "http://")):
        return element("a", text, href=filled, rel="noreferrer", target="_blank")
    return element("span", text, class_="away", title=filled)


def _size(place: Place) -> tuple[float, float]:
    return (
        place.w * _COLUMN + (place.w - 1) * _GAP,
        place.h * _LINE + (place.h - 1) * _GAP,
    )


@cache
def _style() -> str:
    return (files("dashboard_preview") / "style.css").read_text("utf-8")


def rendered(
    board: Dashboard,
    server: Prometheus,
    *,
    given: Mapping[str, Sequence[str]],
    span: Span,
    scrape: float,
    others: Mapping[str, str],
) -> Page:
    """*board* with data of *server* over *span*.

    *given* are selected values by variable, *scrape* is the data source's scrape interval in
    seconds, *others* are the titles of all drawn dashboards by uid.
    """
    context = _context(board, server, given, span, scrape)
    data = {
        number: answered(panel, server, context, plot_width(panel))
        for number, panel in enumerate(board.panels)
        if panel.kind != ROW
    }
    found = marks(board.marks, server, context, float(WIDTH))
    return page(Shown(board=board, context=context, data=data, marks=found, others=others))


def _context(
    board: Dashboard,
    server: Prometheus,
    given: Mapping[str, Sequence[str]],
    span: Span,
    scrape: float,
) -> Context:
    """The values of its variables: the given ones, else All, else the first."""
    everything = {each.name: each.all_values for each in board.variables if each.multi}
    values: dict[str, Sequence[str]] = {}
    if board.source is not None:
        name, value = board.source
        values[name] = (value,)
    for each in board.variables:
        match = interpolate(each.match, values, all_values=everything)
        known = query_label_values(server, each.label, match, span)
        values[each.name] = given.get(each.name) or ((ALL,) if each.multi else known[:1] or ("",))
    return Context(choices=values, all_values=everything, span=span, scrape=scrape)
