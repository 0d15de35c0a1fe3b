"""A panel of the model as Grafana 11 and later write it."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, Final

from grafanalib.core import DashboardLink

from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import duration
from mm2slo_dashboards.dashboard_model import Kind
from mm2slo_dashboards.grafana.field_overrides import (
    Json,
    colour_overrides,
    column_override,
    convert_mappings,
    convert_thresholds,
    count_overrides,
    empty_cell_override,
    link_override,
    without_none,
)

if TYPE_CHECKING:
    from mm2slo_dashboards.dashboard_links import Link, Links
    from mm2slo_dashboards.dashboard_model import Dashboard, Panel

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_FLOW: Final = "Flow"
_ALERT: Final = "Alert"
_BY_THRESHOLDS: Final = {"mode": "thresholds"}
_LEGEND: Final = {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True}
_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def convert_panel(
    panel: Panel, dashboard: Dashboard, links: Links, *, x: int, y: int, number: int
) -> Json:
    """*panel* at its place in the grid, with its links."""
    defaults, options = _APPEARANCE[panel.kind](panel)
    return {
        "datasource": DATASOURCE,
        "description": f"{panel.description}\n\nNo data: {panel.no_data}",
        "fieldConfig": {
            "defaults": without_none(
                {
                    "noValue": panel.no_data,
                    "thresholds": convert_thresholds(panel.thresholds),
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


def convert_link(link: Link) -> DashboardLink:
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
    if all(query.instant for query in panel.all_queries):
        return {}
    return without_none(
        {
            "maxDataPoints": dashboard.max_data_points or None,
            "interval": duration(panel.min_interval) if panel.min_interval else None,
            "timeFrom": panel.time_from or None,
        }
    )


def _links(panel: Panel, dashboard: Dashboard, links: Links) -> list[DashboardLink]:
    next_link = (
        links.to_dashboard(dashboard, panel.next_dashboard) if panel.next_dashboard else None
    )
    linked = (next_link, links.runbook(panel.alert))
    return [convert_link(link) for link in linked if link is not None]


def _targets(panel: Panel) -> list[Json]:
    return [
        {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query.vector.text,
            "format": "table" if panel.kind is Kind.TABLE else "time_series",
            "instant": query.instant,
            "legendFormat": query.legend,
            "range": not query.instant,
            "refId": letter,
        }
        for letter, query in zip(ascii_uppercase, panel.all_queries, strict=False)
    ]


def _overrides(panel: Panel, links: Links) -> list[Json]:
    match panel.kind:
        case Kind.STAT | Kind.BARS:
            return count_overrides(panel.colours)
        case Kind.SERIES:
            return colour_overrides(panel.colours)
        case Kind.TIMELINE:
            return []
        case Kind.TABLE:
            titles = panel.keys.values()
            found = [*map(empty_cell_override, titles), *map(column_override, panel.columns)]
            if _FLOW in titles:
                found.append(link_override(_FLOW, links.row_link(DashboardUid.FLOW, _FLOW)))
            if _ALERT in titles and (runbook := links.row_runbook(_ALERT)) is not None:
                found.append(link_override(_ALERT, runbook))
            return found


def _merge_columns(panel: Panel) -> list[Json]:
    """Transformations that merge the queries into one table with a row for each set of keys."""
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
    named = any(query.legend for query in panel.all_queries)
    defaults = {
        "color": _BY_THRESHOLDS,
        "custom": {},
        "decimals": panel.decimals,
        "mappings": convert_mappings(panel.states, panel.below),
    }
    options = {
        "colorMode": "background" if panel.states else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": _REDUCED,
        "showPercentChange": False,
        "textMode": "value_and_name" if named else "value",
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
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if bounds else "off"},
        },
        "decimals": panel.decimals,
        "mappings": convert_mappings((), panel.below),
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
        "mappings": convert_mappings(panel.states, panel.below),
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
