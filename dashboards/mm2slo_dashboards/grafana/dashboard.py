"""A board of the model as grafanalib's dashboard: rows in the grid, variables, marks, links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafanalib.core import (
    GRAPH_TOOLTIP_MODE_SHARED_TOOLTIP,
    REFRESH_ON_TIME_RANGE_CHANGE,
    Annotations,
    Dashboard,
    DashboardLink,
    GridPos,
    Panel,
    RowPanel,
    Template,
    Templating,
    Time,
)

from mm2slo_core.promql import duration
from mm2slo_dashboards.grafana.panels import DATASOURCE, outer, panel
from mm2slo_dashboards.model import WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_dashboards.grafana.fields import Json
    from mm2slo_dashboards.links import Links
    from mm2slo_dashboards.model import Board, Marks, Row, Variable
    from mm2slo_dashboards.model import Panel as Question

SCHEMA_VERSION: Final = 39
"""Of Grafana 11, which every later release takes; grafanalib's own 12 is refused by some."""
TAG: Final = "mm2slo"
"""By which the boards find each other."""


def dashboard(board: Board, links: Links) -> Dashboard:
    """*board* with panels at their places; ids are their order."""
    return Dashboard(
        uid=board.identity.value,
        title=board.title,
        description=board.description,
        tags=[TAG],
        editable=False,
        graphTooltip=GRAPH_TOOLTIP_MODE_SHARED_TOOLTIP,
        refresh=board.refresh,
        schemaVersion=SCHEMA_VERSION,
        time=Time(board.since, "now"),
        timezone="browser",
        templating=Templating([_datasource(), *(_template(each) for each in board.variables)]),
        annotations=Annotations([_annotation(each) for each in board.marks]),
        links=_links(board, links),
        panels=list(_panels(board, links)),
    )


def _panels(board: Board, links: Links) -> Iterator[Panel]:
    number, y = 0, 0
    for row in board.rows:
        number += 1
        yield RowPanel(title=row.title, id=number, gridPos=GridPos(h=1, w=WIDTH, x=0, y=y))
        y += 1
        for question, (x, below) in zip(row.panels, _places(row), strict=True):
            number += 1
            shown = panel(question, board, links, x=x, y=y + below, number=number)
            yield _as_fine_as_needed(shown, question, board)
        y += _height(row)


def _as_fine_as_needed(shown: Panel, question: Question, board: Board) -> Panel:
    """*shown* with as many points as *question* needs: each is a look at every series."""
    if not all(query.instant for query in question.asked):
        shown.maxDataPoints = board.points or None
        shown.interval = duration(question.step) if question.step else None
        shown.timeFrom = question.last or None
    return shown


def _places(row: Row) -> Iterator[tuple[int, int]]:
    """Column and line of each panel: from left to right, then below the highest one."""
    x = y = highest = 0
    for each in row.panels:
        if x + each.width > WIDTH:
            x, y, highest = 0, y + highest, 0
        yield x, y
        x += each.width
        highest = max(highest, each.height)


def _height(row: Row) -> int:
    places = zip(row.panels, _places(row), strict=True)
    return max((y + each.height for each, (_, y) in places), default=0)


def _datasource() -> Template:
    return Template(
        name="datasource",
        label="Data source",
        type="datasource",
        query="prometheus",
        default="default",
    )


def _template(variable: Variable) -> Template:
    return Template(
        name=variable.name,
        label=variable.title,
        type="query",
        query=f"label_values({variable.series}, {variable.label})",
        dataSource=DATASOURCE,
        refresh=REFRESH_ON_TIME_RANGE_CHANGE,
        multi=variable.several,
        includeAll=variable.several,
        allValue=variable.everything if variable.several else None,
    )


def _annotation(marks: Marks) -> Json:
    return {
        "name": marks.title,
        "enable": True,
        "hide": False,
        "iconColor": marks.colour.value,
        "datasource": DATASOURCE,
        "expr": marks.vector.text,
        "titleFormat": marks.title,
        "textFormat": marks.text,
        "useValueForTime": marks.at_value,
    }


def _links(board: Board, links: Links) -> list[DashboardLink]:
    others = DashboardLink(
        type="dashboards",
        title="MirrorMaker 2",
        tags=[TAG],
        asDropdown=True,
        includeVars=True,
        keepTime=True,
    )
    report = links.report(board)
    return [others] if report is None else [others, outer(report)]
