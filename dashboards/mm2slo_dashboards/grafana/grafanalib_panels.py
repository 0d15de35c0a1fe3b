"""A panel of the model as one of grafanalib."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, Final

from grafanalib.core import (
    DashboardLink,
    GridPos,
    Panel,
    Stat,
    StateTimeline,
    Table,
    TableSortByField,
    Target,
    TimeSeries,
)

from mm2slo_core.dashboard_uids import DashboardUid
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
)
from mm2slo_dashboards.grafana.modern_panel import ModernPanel

if TYPE_CHECKING:
    from mm2slo_dashboards.dashboard_links import Link, Links
    from mm2slo_dashboards.dashboard_model import Dashboard
    from mm2slo_dashboards.dashboard_model import Panel as ModelPanel

DATASOURCE: Final = "${datasource}"
_FLOW: Final = "Flow"
_ALERT: Final = "Alert"
# Grafana's only categorical palette; lines whose names are known have colours of their own.
_CATEGORICAL: Final = {"mode": "palette-classic"}
_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def convert_panel(
    panel: ModelPanel, dashboard: Dashboard, links: Links, *, x: int, y: int, number: int
) -> Panel:
    """*panel* at its place in the grid, with its links."""
    common = {
        "title": panel.title,
        "description": f"{panel.description}\n\nNo data: {panel.no_data}",
        "dataSource": DATASOURCE,
        "targets": _targets(panel),
        "gridPos": GridPos(h=panel.height, w=panel.width, x=x, y=y),
        "id": number,
        "links": _links(panel, dashboard, links),
        "maxDataPoints": None,
        "thresholds": convert_thresholds(panel.thresholds),
    }
    match panel.kind:
        case Kind.STAT:
            return _stat(panel, common)
        case Kind.SERIES:
            return _series(panel, common)
        case Kind.TABLE:
            return _table(panel, links, common)
        case Kind.TIMELINE:
            return _timeline(panel, common)
        case Kind.BARS:
            return _bars(panel, common)


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


def _links(panel: ModelPanel, dashboard: Dashboard, links: Links) -> list[DashboardLink]:
    next_link = (
        links.to_dashboard(dashboard, panel.next_dashboard) if panel.next_dashboard else None
    )
    linked = (next_link, links.runbook(panel.alert))
    return [convert_link(link) for link in linked if link is not None]


def _targets(panel: ModelPanel) -> list[Target]:
    return [
        Target(
            expr=query.vector.text,
            legendFormat=query.legend,
            refId=letter,
            instant=query.instant,
            format=_format(panel),
            datasource=DATASOURCE,
        )
        for letter, query in zip(ascii_uppercase, panel.all_queries, strict=False)
    ]


def _format(panel: ModelPanel) -> str:
    return "table" if panel.kind is Kind.TABLE else "time_series"


def _stat(panel: ModelPanel, common: Json) -> Stat:
    named = any(query.legend for query in panel.all_queries)
    return Stat(
        **common,
        format=panel.unit.value,
        noValue=panel.no_data,
        decimals=panel.decimals,
        mappings=convert_mappings(panel.states, panel.below),
        overrides=count_overrides(panel.colours),
        color={"mode": "thresholds"},
        colorMode="background" if panel.states else "value",
        graphMode="none",
        reduceCalc="lastNotNull",
        textMode="value_and_name" if named else "value",
    )


def _series(panel: ModelPanel, common: Json) -> TimeSeries:
    bounds = panel.thresholds is not None and bool(panel.thresholds.bounds)
    return TimeSeries(
        **common,
        unit=panel.unit.value,
        valueDecimals=panel.decimals,
        mappings=convert_mappings((), panel.below),
        overrides=colour_overrides(panel.colours),
        drawStyle="line",
        lineWidth=2,
        fillOpacity=20 if panel.stacked else 0,
        showPoints="never",
        legendDisplayMode="list",
        legendPlacement="bottom",
        legendCalcs=["lastNotNull"],
        tooltipMode="multi",
        tooltipSort="desc",
        stacking={"mode": "normal" if panel.stacked else "none", "group": "A"},
        thresholdsStyleMode="dashed" if bounds else "off",
        extraJson={"fieldConfig": {"defaults": {**_range(panel), "color": _CATEGORICAL}}},
    )


def _table(panel: ModelPanel, links: Links, common: Json) -> Table:
    titles = panel.keys.values()
    overrides = [*map(empty_cell_override, titles), *map(column_override, panel.columns)]
    if _FLOW in titles:
        overrides.append(link_override(_FLOW, links.row_link(DashboardUid.FLOW, _FLOW)))
    if _ALERT in titles and (runbook := links.row_runbook(_ALERT)) is not None:
        overrides.append(link_override(_ALERT, runbook))
    return Table(
        **common,
        transformations=_merge_columns(panel),
        unit=panel.unit.value,
        overrides=overrides,
        sortBy=[
            TableSortByField(each.removeprefix("-"), each.startswith("-")) for each in panel.sort
        ],
        extraJson={"fieldConfig": {"defaults": {"noValue": panel.no_data}}},
    )


def _merge_columns(panel: ModelPanel) -> list[Json]:
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


def _timeline(panel: ModelPanel, common: Json) -> StateTimeline:
    return StateTimeline(
        **common,
        mappings=convert_mappings(panel.states, panel.below),
        showValue="auto",
        extraJson={
            "fieldConfig": {
                "defaults": {"unit": panel.unit.value, "noValue": panel.no_data},
            },
            "options": {"perPage": 20},
        },
    )


def _bars(panel: ModelPanel, common: Json) -> ModernPanel:
    return ModernPanel(
        **common,
        kind=panel.kind.value,
        defaults={
            **_range(panel),
            "unit": panel.unit.value,
            "decimals": panel.decimals,
            "color": {"mode": "thresholds"},
        },
        overrides=count_overrides(panel.colours),
        options={
            "displayMode": "basic",
            "legend": {
                "calcs": [],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": False,
            },
            "maxVizHeight": 300,
            "minVizHeight": 16,
            "minVizWidth": 8,
            "namePlacement": "left",
            "orientation": "horizontal",
            "reduceOptions": _REDUCED,
            "showUnfilled": True,
            "sizing": "auto",
            "valueMode": "color",
        },
    )


def _range(panel: ModelPanel) -> Json:
    """Fields that grafanalib takes as integers only, or not at all."""
    return {"min": panel.minimum, "max": panel.maximum, "noValue": panel.no_data}
