"""A dashboard of the model as one of grafanalib: rows, variables, annotations, links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafanalib.core import (
    GRAPH_TOOLTIP_MODE_SHARED_TOOLTIP,
    REFRESH_ON_TIME_RANGE_CHANGE,
    Annotations,
    DashboardLink,
    GridPos,
    Panel,
    RowPanel,
    Template,
    Templating,
    Time,
)
from grafanalib.core import Dashboard as GrafanaDashboard

from mm2slo_core.promql import duration
from mm2slo_dashboards.dashboard_model import WIDTH
from mm2slo_dashboards.grafana.grafanalib_panels import DATASOURCE, convert_link, convert_panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_dashboards.dashboard_links import Links
    from mm2slo_dashboards.dashboard_model import Annotation, Dashboard, Row, Variable
    from mm2slo_dashboards.dashboard_model import Panel as ModelPanel
    from mm2slo_dashboards.grafana.field_overrides import Json

SCHEMA_VERSION: Final = 39
"""Of Grafana 11, which later releases accept; some refuse grafanalib's own 12."""
TAG: Final = "mm2slo"
"""By which the dashboards list each other."""


def convert_dashboard(dashboard: Dashboard, links: Links) -> GrafanaDashboard:
    """*dashboard* with panels at their places in the grid; ids are their order."""
    return GrafanaDashboard(
        uid=dashboard.uid.value,
        title=dashboard.title,
        description=dashboard.description,
        tags=[TAG],
        editable=False,
        graphTooltip=GRAPH_TOOLTIP_MODE_SHARED_TOOLTIP,
        refresh=dashboard.refresh,
        schemaVersion=SCHEMA_VERSION,
        time=Time(dashboard.time_from, "now"),
        timezone="browser",
        templating=Templating([_datasource(), *(_template(each) for each in dashboard.variables)]),
        annotations=Annotations([_annotation(each) for each in dashboard.annotations]),
        links=_links(dashboard, links),
        panels=list(_panels(dashboard, links)),
    )


def _panels(dashboard: Dashboard, links: Links) -> Iterator[Panel]:
    number, y = 0, 0
    for row in dashboard.rows:
        number += 1
        yield RowPanel(title=row.title, id=number, gridPos=GridPos(h=1, w=WIDTH, x=0, y=y))
        y += 1
        for panel, (x, below) in zip(row.panels, _places(row), strict=True):
            number += 1
            converted = convert_panel(panel, dashboard, links, x=x, y=y + below, number=number)
            yield _set_resolution(converted, panel, dashboard)
        y += _height(row)


def _set_resolution(converted: Panel, panel: ModelPanel, dashboard: Dashboard) -> Panel:
    """*converted* with the number of points and the time range of *panel*."""
    if not all(query.instant for query in panel.all_queries):
        converted.maxDataPoints = dashboard.max_data_points or None
        converted.interval = duration(panel.min_interval) if panel.min_interval else None
        converted.timeFrom = panel.time_from or None
    return converted


def _places(row: Row) -> Iterator[tuple[int, int]]:
    """Column and line of each panel: left to right, then below the tallest one."""
    x = y = tallest = 0
    for each in row.panels:
        if x + each.width > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        yield x, y
        x += each.width
        tallest = max(tallest, each.height)


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
        multi=variable.multi,
        includeAll=variable.multi,
        allValue=variable.all_value if variable.multi else None,
    )


def _annotation(annotation: Annotation) -> Json:
    return {
        "name": annotation.title,
        "enable": True,
        "hide": False,
        "iconColor": annotation.colour.value,
        "datasource": DATASOURCE,
        "expr": annotation.vector.text,
        "titleFormat": annotation.title,
        "textFormat": annotation.text,
        "useValueForTime": annotation.value_is_time,
    }


def _links(dashboard: Dashboard, links: Links) -> list[DashboardLink]:
    others = DashboardLink(
        type="dashboards",
        title="MirrorMaker 2",
        tags=[TAG],
        asDropdown=True,
        includeVars=True,
        keepTime=True,
    )
    report = links.report(dashboard)
    return [others] if report is None else [others, convert_link(report)]
