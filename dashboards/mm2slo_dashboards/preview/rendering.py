"""From a board and a Prometheus to a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_dashboards.preview.answering import Context, answered
from mm2slo_dashboards.preview.choosing import choices
from mm2slo_dashboards.preview.marking import marks
from mm2slo_dashboards.preview.page import WIDTH, Shown, page, plot_width
from mm2slo_dashboards.preview.reading.dashboard import ROW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_dashboards.preview.asking import Prometheus
    from mm2slo_dashboards.preview.reading.dashboard import Dashboard
    from mm2slo_dashboards.preview.times import Span


class Rendered(NamedTuple):
    """A page, its size in pixels, and each query that Prometheus refused, with its place."""

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
    """*board* with what *server* knows of *span*.

    *given* are chosen values by variable, *scrape* is the data source's scrape interval in
    seconds, *others* are the titles of all boards that are rendered, by identity. Raises UserError
    when *server* does not answer, or does not know a chosen value.
    """
    chosen = choices(board, server, given, span)
    context = Context(choices=chosen.values, everything=chosen.everything, span=span, scrape=scrape)
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
