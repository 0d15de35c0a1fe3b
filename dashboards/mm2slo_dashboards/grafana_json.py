"""A dashboard of the model as Grafana 11 and later import and provision it.

grafanalib 0.7.1 frames dashboards, but writes keys of Grafana 4 to 7, such as rows and hidden
controls. Grafana's migration of such files differs between releases and is lossy, so these keys
are left out; panels and variables are written in the current format. Links within Grafana start at
its root.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Final

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

from mm2slo_core.catalogue.promql import duration
from mm2slo_core.config.alerting_config import LinksConfig
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    NEUTRAL,
    WIDTH,
    Annotation,
    Below,
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelThresholds,
    PanelUnit,
    Row,
    StateMapping,
    TableColumn,
    Variable,
)

Json = dict[str, Any]

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

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_FLOW: Final = "Flow"
_ALERT: Final = "Alert"
_BY_THRESHOLDS: Final = {"mode": "thresholds"}
_LEGEND: Final = {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True}
_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}

CELL: Final = "custom.cellOptions"
_JUST_BELOW: Final = 1e-9
_NO_VALUE: Final = "–"  # noqa: RUF001 - an en dash
_CONTEXT: Final = ("${datasource:queryparam}", "${__url_time_range}")


@dataclass(frozen=True, slots=True)
class Link:
    """A link; an `external` one opens in a new tab."""

    title: str
    address: str
    external: bool = False


class DashboardLinks:
    """The links of *dashboards* to each other, and to the runbooks and the report service."""

    def __init__(self, dashboards: Iterable[Dashboard], addresses: LinksConfig) -> None:
        self._dashboards: Mapping[DashboardUid, Dashboard] = {each.uid: each for each in dashboards}
        self._addresses = addresses

    def to_dashboard(self, current: Dashboard, uid: DashboardUid) -> Link:
        """From *current* to another dashboard, with the variables that both have.

        A variable with several values is not carried to a dashboard that takes one.
        """
        target = self._dashboards[uid]
        multi = {each.name: each.multi for each in current.variables}
        carried = [
            f"${{{each.name}:queryparam}}"
            for each in target.variables
            if each.name in multi and (each.multi or not multi[each.name])
        ]
        return Link(target.title, _address(target, *carried))

    def row_link(self, uid: DashboardUid, column: str) -> Link:
        """To the dashboard of the flow in the row's *column*."""
        target = self._dashboards[uid]
        flow = f"var-flow=${{__data.fields.{column}:percentencode}}"
        return Link(f"{target.title} of this flow", _address(target, flow))

    def runbook(self, alert: str) -> Link | None:
        """To the runbook of *alert*."""
        base = self._addresses.runbook if alert else None
        return self._external(base, f"Runbook {alert}", f"/{alert}.md")

    def row_runbook(self, column: str) -> Link | None:
        """To the runbook of the alert in the row's *column*."""
        return self._external(
            self._addresses.runbook, "Runbook", f"/${{__data.fields.{column}}}.md"
        )

    def report(self, dashboard: Dashboard) -> Link | None:
        """To the page of the report service for *dashboard*."""
        single = [each for each in dashboard.variables if each.name == "flow" and not each.multi]
        return self._external(
            self._addresses.report,
            "Report",
            f"/slo{'?flow=${flow:percentencode}' if single else ''}",
        )

    def _external(self, base: str | None, title: str, rest: str) -> Link | None:
        return Link(title, f"{base.rstrip('/')}{rest}", external=True) if base else None


def _address(dashboard: Dashboard, *parameters: str) -> str:
    return f"/d/{dashboard.uid}?{'&'.join((*_CONTEXT, *parameters))}"


def render_dashboard(dashboard: Dashboard, links: DashboardLinks) -> str:
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


def _document(dashboard: Dashboard, links: DashboardLinks) -> dict[str, Any]:
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
        links=_dashboard_links(dashboard, links),
        panels=list(_panels(dashboard, links)),
    ).to_json_data()
    intervals = written["timepicker"].to_json_data()["refresh_intervals"]
    return {
        **{key: written[key] for key in _KEYS},
        "timepicker": {"refresh_intervals": intervals},
    }


def _panels(dashboard: Dashboard, links: DashboardLinks) -> Iterator[Json]:
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
            yield _convert_panel(panel, dashboard, links, x=x, y=y + below, number=number)
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
    return _without_none(
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


def _dashboard_links(dashboard: Dashboard, links: DashboardLinks) -> list[DashboardLink]:
    others = DashboardLink(
        type="dashboards",
        title="MirrorMaker 2",
        tags=[TAG],
        asDropdown=True,
        includeVars=True,
        keepTime=True,
    )
    report = links.report(dashboard)
    return [others] if report is None else [others, _convert_link(report)]


def _convert_panel(
    panel: Panel, dashboard: Dashboard, links: DashboardLinks, *, x: int, y: int, number: int
) -> Json:
    """*panel* at its place in the grid, with its links."""
    defaults, options = _APPEARANCE[panel.kind](panel)
    return {
        "datasource": DATASOURCE,
        "description": f"{panel.description}\n\nNo data: {panel.no_data}",
        "fieldConfig": {
            "defaults": _without_none(
                {
                    "noValue": panel.no_data,
                    "thresholds": _convert_thresholds(panel.thresholds),
                    "unit": panel.unit.value,
                    **defaults,
                }
            ),
            "overrides": _overrides(panel, links),
        },
        "gridPos": {"h": panel.height, "w": panel.width, "x": x, "y": y},
        "id": number,
        "links": _links(panel, dashboard, links),
        "options": options,
        "targets": _targets(panel),
        "title": panel.title,
        "transformations": _merge_columns(panel) if panel.columns else [],
        "transparent": False,
        "type": panel.kind.value,
        **_resolution(panel, dashboard),
    }


def _convert_link(link: Link) -> DashboardLink:
    """A link at the top of a panel or a dashboard."""
    return DashboardLink(
        type="link",
        title=link.title,
        uri=link.address,
        keepTime=False,
        targetBlank=link.external,
        icon="doc" if link.external else "dashboard",
    )


def _resolution(panel: Panel, dashboard: Dashboard) -> Json:
    """The number of points and the time range of *panel*."""
    if panel.kind.is_instant:
        return {}
    return _without_none(
        {
            "maxDataPoints": dashboard.max_data_points or None,
            "interval": duration(panel.min_interval) if panel.min_interval else None,
            "timeFrom": panel.time_from or None,
        }
    )


def _links(panel: Panel, dashboard: Dashboard, links: DashboardLinks) -> list[DashboardLink]:
    next_link = (
        links.to_dashboard(dashboard, panel.next_dashboard) if panel.next_dashboard else None
    )
    linked = (next_link, links.runbook(panel.alert))
    return [_convert_link(link) for link in linked if link is not None]


def _targets(panel: Panel) -> list[Json]:
    queries = panel.queries.items() or [("", each.vector) for each in panel.columns]
    return [
        {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": vector.text,
            "format": "table" if panel.kind is Kind.TABLE else "time_series",
            "instant": panel.kind.is_instant,
            "legendFormat": legend,
            "range": not panel.kind.is_instant,
            "refId": letter,
        }
        for letter, (legend, vector) in zip(ascii_uppercase, queries, strict=False)
    ]


def _overrides(panel: Panel, links: DashboardLinks) -> list[Json]:
    match panel.kind:
        case Kind.STAT | Kind.BARS:
            # A count by name: its colour from 1 on, neutral at 0.
            counts = {
                name: PanelThresholds(Colour.NEUTRAL, ((1.0, Colour(colour)),))
                for name, colour in panel.colours.items()
            }
            return [
                _override(name, ("thresholds", _convert_thresholds(each)))
                for name, each in counts.items()
            ]
        case Kind.SERIES:
            return [
                _override(name, ("color", {"mode": "fixed", "fixedColor": str(colour)}))
                for name, colour in panel.colours.items()
            ]
        case Kind.TIMELINE:
            return []
        case Kind.TABLE:
            titles = panel.keys.values()
            # Grafana would show the panel's text for no data in each empty cell.
            found = [_override(title, ("noValue", _NO_VALUE)) for title in titles]
            found += [_column_override(each, panel.unit) for each in panel.columns]
            if _FLOW in titles:
                found.append(_link_override(_FLOW, links.row_link(DashboardUid.FLOW, _FLOW)))
            if _ALERT in titles and (runbook := links.row_runbook(_ALERT)) is not None:
                found.append(_link_override(_ALERT, runbook))
            return found


def _merge_columns(panel: Panel) -> list[Json]:
    """Transformations that merge the queries into one table with a row for each set of keys."""
    # Grafana names the values of a query in table format `Value`, with several queries `Value #A`.
    single = len(panel.columns) == 1
    values = {
        "Value" if single else f"Value #{letter}": each.title
        for letter, each in zip(ascii_uppercase, panel.columns, strict=False)
    }
    names = {**panel.keys, **values}
    organize = {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True},
            "indexByName": {name: n for n, name in enumerate(names)},
            "renameByName": names,
        },
    }
    return [organize] if single else [{"id": "merge", "options": {}}, organize]


def _stat(panel: Panel) -> tuple[Json, Json]:
    defaults = {
        "color": _BY_THRESHOLDS,
        "custom": {},
        "decimals": panel.decimals,
        "mappings": _convert_mappings(panel.states, panel.below),
    }
    options = {
        "colorMode": "background" if panel.states else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": _REDUCED,
        "showPercentChange": False,
        "textMode": "value_and_name" if any(panel.queries) else "value",
        "wideLayout": True,
    }
    return defaults, options


def _series(panel: Panel) -> tuple[Json, Json]:
    bounds = panel.thresholds is not None and bool(panel.thresholds.bounds)
    defaults = {
        # Grafana's only categorical palette; lines whose names are known have their own colours.
        "color": {"mode": "palette-classic"},
        "custom": {
            "axisLabel": "",
            "axisPlacement": "auto",
            "barAlignment": 0,
            "drawStyle": "line",
            "fillOpacity": 20 if panel.stacked else 0,
            "gradientMode": "none",
            "hideFrom": {"legend": False, "tooltip": False, "viz": False},
            "lineInterpolation": "linear",
            "lineWidth": 2,
            "pointSize": 5,
            "scaleDistribution": {"log": 2, "type": "linear"},
            "showPoints": "never",
            # A line across a time without samples would show figures that were never measured.
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if bounds else "off"},
        },
        "decimals": panel.decimals,
        "mappings": _convert_mappings((), panel.below),
        "max": panel.maximum,
        "min": panel.minimum,
    }
    options = {
        "legend": {**_LEGEND, "calcs": ["lastNotNull"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return defaults, options


def _table(panel: Panel) -> tuple[Json, Json]:
    defaults = {
        "color": {"mode": "fixed", "fixedColor": "text"},
        "custom": {"align": "auto", "filterable": False, "inspect": False},
    }
    options = {
        "cellHeight": "sm",
        "footer": {"countRows": False, "reducer": [], "show": False},
        "frameIndex": 0,
        "showHeader": True,
        "sortBy": [
            {"displayName": each.removeprefix("-"), "desc": each.startswith("-")}
            for each in panel.sort
        ],
    }
    return defaults, options


def _timeline(panel: Panel) -> tuple[Json, Json]:
    defaults = {
        "color": _BY_THRESHOLDS,
        "custom": {"fillOpacity": 70, "lineWidth": 0},
        "mappings": _convert_mappings(panel.states, panel.below),
    }
    options = {
        "alignValue": "left",
        "legend": _LEGEND,
        "mergeValues": True,
        "perPage": 20,
        "rowHeight": 0.9,
        "showValue": "auto",
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return defaults, options


def _bars(panel: Panel) -> tuple[Json, Json]:
    defaults = {
        "color": _BY_THRESHOLDS,
        "decimals": panel.decimals,
        "max": panel.maximum,
        "min": panel.minimum,
    }
    options = {
        "displayMode": "basic",
        "legend": {**_LEGEND, "showLegend": False},
        "maxVizHeight": 300,
        "minVizHeight": 16,
        "minVizWidth": 8,
        "namePlacement": "left",
        "orientation": "horizontal",
        "reduceOptions": _REDUCED,
        "showUnfilled": True,
        "sizing": "auto",
        "valueMode": "color",
    }
    return defaults, options


_APPEARANCE: Final = {
    Kind.STAT: _stat,
    Kind.SERIES: _series,
    Kind.TABLE: _table,
    Kind.TIMELINE: _timeline,
    Kind.BARS: _bars,
}
"""Defaults of fields, and options, by kind of panel."""


def _without_none(fields: Json) -> Json:
    """*fields* without those that are not set."""
    return {name: value for name, value in fields.items() if value is not None}


def _convert_thresholds(thresholds: PanelThresholds | None) -> Json:
    """The colours by value; the first one applies below every bound."""
    chosen = thresholds or NEUTRAL
    steps: list[Json] = [{"color": chosen.base.value, "value": None}]
    steps += [{"color": colour.value, "value": float(bound)} for bound, colour in chosen.bounds]
    return {"mode": "absolute", "steps": steps}


def _convert_mappings(states: Sequence[StateMapping], below: Below | None = None) -> list[Json]:
    """Value mappings: the text and colour of each code, and of values below a bound."""
    found: list[Json] = []
    if states:
        options: Json = {
            str(state.code): {"text": state.text, "color": state.colour.value, "index": n}
            for n, state in enumerate(states)
        }
        found.append({"type": "value", "options": options})
    if below is not None:
        # Grafana's range includes its end.
        result = {"text": below.text, "color": below.colour.value, "index": len(states)}
        options = {"from": None, "to": below.bound - _JUST_BELOW, "result": result}
        found.append({"type": "range", "options": options})
    return found


def _column_override(column: TableColumn, unit: PanelUnit) -> Json:
    """The override of a value column in a table with *unit*."""
    properties: list[tuple[str, object]] = [
        ("unit", (column.unit or unit).value),
        ("noValue", _NO_VALUE),
    ]
    if column.decimals is not None:
        properties.append(("decimals", column.decimals))
    if mappings := _convert_mappings(column.states, column.below):
        properties.append(("mappings", mappings))
    if any(state.colour is not Colour.NEUTRAL for state in column.states):
        properties.append((CELL, {"type": "color-background", "mode": "basic"}))
    elif column.thresholds is not None:
        properties += [
            ("thresholds", _convert_thresholds(column.thresholds)),
            ("color", {"mode": "thresholds"}),
            (CELL, {"type": "color-text"}),
        ]
    return _override(column.title, *properties)


def _link_override(name: str, link: Link) -> Json:
    """The override that adds *link* to the column *name*."""
    value = {"title": link.title, "url": link.address, "targetBlank": link.external}
    return _override(name, ("links", [value]))


def _override(name: str, *properties: tuple[str, object]) -> Json:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties],
    }
