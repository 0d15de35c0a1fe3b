"""A dashboard of the model as Grafana 11 and later import and provision it.

grafanalib 0.7.1 writes keys of Grafana 4 to 7, such as rows and hidden controls. Grafana's
migration of such files differs between releases and is lossy, so these keys are left out; panels
and variables are written in the current format. Schema tests check the result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from grafanalib._gen import DashboardEncoder
from grafanalib.core import (
    GRAPH_TOOLTIP_MODE_SHARED_TOOLTIP,
    REFRESH_ON_TIME_RANGE_CHANGE,
    Annotations,
    DashboardLink,
    Templating,
    Time,
)
from grafanalib.core import Dashboard as GrafanaDashboard

from mm2slo_dashboards.dashboard_model import WIDTH
from mm2slo_dashboards.grafana.field_overrides import Json, without_none
from mm2slo_dashboards.grafana.panel_json import DATASOURCE, convert_link, convert_panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_dashboards.dashboard_links import Links
    from mm2slo_dashboards.dashboard_model import Annotation, Dashboard, Row, Variable

SCHEMA_VERSION: Final = 39
"""Of Grafana 11, which later releases accept; some refuse grafanalib's own 12."""
TAG: Final = "mm2slo"
"""By which the dashboards list each other."""
_KEYS: Final = (
    *("annotations", "description", "editable", "graphTooltip", "links", "panels", "refresh"),
    *("schemaVersion", "tags", "templating", "time", "timezone", "title", "uid"),
)
_DATASOURCE_VARIABLE: Final = {
    "current": {"selected": True, "text": "default", "value": "default"},
    "hide": 0,
    "includeAll": False,
    "label": "Data source",
    "multi": False,
    "name": "datasource",
    "query": "prometheus",
    "refresh": 1,
    "sort": 1,
    "type": "datasource",
}


def render_dashboard(dashboard: Dashboard, links: Links) -> str:
    """The dashboard as JSON text; the same dashboard always gives the same bytes."""
    written = json.dumps(
        _document(dashboard, links),
        cls=DashboardEncoder,
        indent=2,
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
    )
    return f"{written}\n"


def _document(dashboard: Dashboard, links: Links) -> dict[str, Any]:
    written = GrafanaDashboard(
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
        templating=Templating([_DATASOURCE_VARIABLE, *map(_variable, dashboard.variables)]),
        annotations=Annotations([_annotation(each) for each in dashboard.annotations]),
        links=_links(dashboard, links),
        panels=list(_panels(dashboard, links)),
    ).to_json_data()
    intervals = written["timepicker"].to_json_data()["refresh_intervals"]
    return {
        **{key: written[key] for key in _KEYS},
        "timepicker": {"refresh_intervals": intervals},
    }


def _panels(dashboard: Dashboard, links: Links) -> Iterator[Json]:
    """Panels at their places in the grid; ids are their order."""
    number, y = 0, 0
    for row in dashboard.rows:
        number += 1
        yield {
            "collapsed": False,
            "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y},
            "id": number,
            "panels": [],
            "title": row.title,
            "type": "row",
        }
        y += 1
        for panel, (x, below) in zip(row.panels, _places(row), strict=True):
            number += 1
            yield convert_panel(panel, dashboard, links, x=x, y=y + below, number=number)
        y += _height(row)


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


def _variable(variable: Variable) -> Json:
    every = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return without_none(
        {
            "allValue": variable.all_value if variable.multi else None,
            "current": every if variable.multi else None,
            "datasource": DATASOURCE,
            "hide": 0,
            "includeAll": variable.multi,
            "label": variable.title,
            "multi": variable.multi,
            "name": variable.name,
            "query": f"label_values({variable.series}, {variable.label})",
            "refresh": REFRESH_ON_TIME_RANGE_CHANGE,
            "sort": 1,
            "type": "query",
        }
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
