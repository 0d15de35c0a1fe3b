"""Draws a dashboard from a Prometheus."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dashboard_preview import prometheus_api
from dashboard_preview.annotation_marks import marks
from dashboard_preview.grafana_json.dashboard_json import ROW, Dashboard, Variable
from dashboard_preview.interpolation import ALL, interpolate
from dashboard_preview.page_html import WIDTH, Shown, page, plot_width
from dashboard_preview.panel_data import Context, answered
from dashboard_preview.prometheus_api import Prometheus
from dashboard_preview.time_range import Span
from mm2slo_core.user_errors import UserError


class Choices(NamedTuple):
    """The values by variable, the values of All, and rejected queries."""

    values: Mapping[str, Sequence[str]]
    all_values: Mapping[str, str]
    refused: tuple[str, ...]


def choices(
    board: Dashboard, server: Prometheus, given: Mapping[str, Sequence[str]], span: Span
) -> Choices:
    """The selected values on *board*; *given* may name variables that it does not have.

    Raises UserError for several values of a variable that takes one, and for a value without
    series in this time range.
    """
    everything = {each.name: each.all_values for each in board.variables if each.multi}
    values: dict[str, Sequence[str]] = {}
    if board.source is not None:
        name, value = board.source
        values[name] = (value,)
    refused: list[str] = []
    for each in board.variables:
        match = interpolate(each.match, values, all_values=everything)
        try:
            known = prometheus_api.query_label_values(server, each.label, match, span)
        except prometheus_api.QueryRejectedError as error:
            refused.append(f"variable {each.name!r}: {error}")
            known = tuple(given.get(each.name, ()))
        values[each.name] = _chosen(each, given.get(each.name, ()), known)
    return Choices(values, everything, tuple(refused))


def _chosen(variable: Variable, given: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    if not given:
        return (ALL,) if variable.multi else (*known[:1], "")[:1]
    if list(given) == [ALL] and variable.multi:
        return given
    if len(given) > 1 and not variable.multi:
        raise UserError(f"variable {variable.name!r} takes one value, got {len(given)}")
    for value in given:
        if value not in known:
            raise UserError(
                f"variable {variable.name!r}: unknown value {value!r}; expected one of {[*known]}"
            )
    return given


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
