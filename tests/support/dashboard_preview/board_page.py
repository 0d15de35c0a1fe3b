"""Draws a dashboard from a Prometheus."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dashboard_preview.annotation_marks import marks
from dashboard_preview.grafana_json.dashboard_json import ROW, Dashboard
from dashboard_preview.page_html import WIDTH, Shown, page, plot_width
from dashboard_preview.panel_data import Context, answered
from dashboard_preview.prometheus_api import Prometheus
from dashboard_preview.time_range import Span
from dashboard_preview.variable_choices import choices


class Rendered(NamedTuple):
    """A page, its size in pixels, and each query that Prometheus rejected, with its panel."""

    uid: str
    html: str
    width: int
    height: int
    refused: tuple[str, ...]


def rendered(
    board: Dashboard,
    server: Prometheus,
    *,
    given: Mapping[str, Sequence[str]],
    span: Span,
    scrape: float,
    others: Mapping[str, str],
    dark: bool = True,
) -> Rendered:
    """*board* with data of *server* over *span*.

    *given* are selected values by variable, *scrape* is the data source's scrape interval in
    seconds, *others* are the titles of all drawn dashboards by uid. Raises UserError when *server*
    does not respond, or a selected value does not exist.
    """
    chosen = choices(board, server, given, span)
    context = Context(choices=chosen.values, all_values=chosen.all_values, span=span, scrape=scrape)
    data = {
        number: answered(panel, server, context, plot_width(panel))
        for number, panel in enumerate(board.panels)
        if panel.kind != ROW
    }
    found, refused = marks(board.marks, server, context, float(WIDTH))
    shown = Shown(board=board, context=context, data=data, marks=found, others=others, dark=dark)
    html, height = page(shown)
    by_panel = (
        f"panel {board.panels[number].title!r}, query {problem}"
        for number, each in data.items()
        for problem in each.refused
    )
    said = (*chosen.refused, *by_panel, *refused)
    return Rendered(board.uid, html, WIDTH, height, tuple(f"{board.uid}: {each}" for each in said))
