"""One panel of the model as one of grafanalib's."""

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

from mm2slo_core.boards import Board as Identity
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.grafana.fields import (
    Json,
    coloured,
    column,
    counted,
    hollow,
    linked,
    mappings,
    thresholds,
)
from mm2slo_dashboards.grafana.shapes import ModernPanel
from mm2slo_dashboards.model import Kind, Unit

if TYPE_CHECKING:
    from mm2slo_dashboards.links import Link, Links
    from mm2slo_dashboards.model import Board
    from mm2slo_dashboards.model import Panel as Question

DATASOURCE: Final = "${datasource}"
_FLOW: Final = "Flow"
_ALERT: Final = "Alert"
# Of one hue, told apart by brightness: Grafana's own palette is not for every eye.
_SHADES: Final = {"mode": "shades", "fixedColor": Colour.COURSE.value}
_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def panel(question: Question, board: Board, links: Links, *, x: int, y: int, number: int) -> Panel:
    """*question* at its place in the grid, with its links."""
    common = {
        "title": question.title,
        "description": f"{question.description}\n\nNo data: {question.no_data}",
        "dataSource": DATASOURCE,
        "targets": _targets(question),
        "gridPos": GridPos(h=question.height, w=question.width, x=x, y=y),
        "id": number,
        "links": _links(question, board, links),
        "maxDataPoints": None,
        "thresholds": thresholds(question.steps),
    }
    match question.kind:
        case Kind.STAT:
            return _stat(question, common)
        case Kind.SERIES:
            return _series(question, common)
        case Kind.TABLE:
            return _table(question, links, common)
        case Kind.TIMELINE:
            return _timeline(question, common)
        case Kind.HEATMAP:
            return _heatmap(question, common)
        case Kind.BARS:
            return _bars(question, common)


def outer(link: Link) -> DashboardLink:
    """A link at the top of a panel or a board."""
    return DashboardLink(
        type="link",
        title=link.title,
        uri=link.address,
        keepTime=False,
        targetBlank=link.outside,
        icon="doc" if link.outside else "dashboard",
    )


def _links(question: Question, board: Board, links: Links) -> list[DashboardLink]:
    next_board = links.next(board, question.leads) if question.leads else None
    found = (next_board, links.runbook(question.alert))
    return [outer(link) for link in found if link is not None]


def _targets(question: Question) -> list[Target]:
    return [
        Target(
            expr=query.vector.text,
            legendFormat=query.legend,
            refId=letter,
            instant=query.instant,
            format=_format(question),
            datasource=DATASOURCE,
        )
        for letter, query in zip(ascii_uppercase, question.asked, strict=False)
    ]


def _format(question: Question) -> str:
    return {Kind.TABLE: "table", Kind.HEATMAP: "heatmap"}.get(question.kind, "time_series")


def _stat(question: Question, common: Json) -> Stat:
    named = any(query.legend for query in question.asked)
    return Stat(
        **common,
        format=question.unit.value,
        noValue=question.no_data,
        decimals=question.decimals,
        mappings=mappings(question.states),
        overrides=counted(question.colours),
        color={"mode": "thresholds"},
        colorMode="background" if question.states else "value",
        graphMode="none",
        reduceCalc="lastNotNull",
        textMode="value_and_name" if named else "value",
    )


def _series(question: Question, common: Json) -> TimeSeries:
    bounds = question.steps is not None and bool(question.steps.bounds)
    return TimeSeries(
        **common,
        unit=question.unit.value,
        valueDecimals=question.decimals,
        overrides=coloured(question.colours),
        drawStyle="line",
        lineWidth=2,
        fillOpacity=20 if question.stacked else 0,
        showPoints="never",
        legendDisplayMode="list",
        legendPlacement="bottom",
        legendCalcs=["lastNotNull"],
        tooltipMode="multi",
        tooltipSort="desc",
        stacking={"mode": "normal" if question.stacked else "none", "group": "A"},
        thresholdsStyleMode="dashed" if bounds else "off",
        extraJson={"fieldConfig": {"defaults": {**_range(question), "color": _SHADES}}},
    )


def _table(question: Question, links: Links, common: Json) -> Table:
    titles = question.keys.values()
    overrides = [*map(hollow, titles), *map(column, question.columns)]
    if _FLOW in titles:
        overrides.append(linked(_FLOW, links.of_row(Identity.FLOW, _FLOW)))
    if _ALERT in titles and (runbook := links.runbook_of_row(_ALERT)) is not None:
        overrides.append(linked(_ALERT, runbook))
    return Table(
        **common,
        transformations=_joined(question),
        unit=question.unit.value,
        overrides=overrides,
        sortBy=[
            TableSortByField(each.removeprefix("-"), each.startswith("-")) for each in question.sort
        ],
        extraJson={"fieldConfig": {"defaults": {"noValue": question.no_data}}},
    )


def _joined(question: Question) -> list[Json]:
    """One row for each set of keys: Grafana's own steps from several answers to one table."""
    single = len(question.columns) == 1
    values = {
        "Value" if single else f"Value #{letter}": each.title
        for letter, each in zip(ascii_uppercase, question.columns, strict=False)
    }
    names = {**question.keys, **values}
    organised = {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True},
            "indexByName": {name: n for n, name in enumerate(names)},
            "renameByName": names,
        },
    }
    return [organised] if single else [{"id": "merge", "options": {}}, organised]


def _timeline(question: Question, common: Json) -> StateTimeline:
    return StateTimeline(
        **common,
        mappings=mappings(question.states),
        showValue="auto",
        extraJson={
            "fieldConfig": {
                "defaults": {"unit": question.unit.value, "noValue": question.no_data},
            },
            "options": {"perPage": 20},
        },
    )


def _heatmap(question: Question, common: Json) -> ModernPanel:
    return ModernPanel(
        **common,
        kind=question.kind.value,
        defaults={"noValue": question.no_data, "unit": Unit.COUNT.value},
        options={
            "calculate": False,
            # Of one hue, from light to dark: it reads the same for every eye.
            "color": {
                "mode": "scheme",
                "scheme": "Blues",
                "fill": Colour.NEUTRAL.value,
                "exponent": 0.5,
                "steps": 64,
                "reverse": False,
            },
            "cellGap": 1,
            "filterValues": {"le": 1e-9},
            "rowsFrame": {"layout": "auto"},
            "showValue": "never",
            "yAxis": {"axisPlacement": "left", "reverse": False, "unit": question.unit.value},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
            "exemplars": {"color": Colour.BAD.value},
        },
    )


def _bars(question: Question, common: Json) -> ModernPanel:
    return ModernPanel(
        **common,
        kind=question.kind.value,
        defaults={
            **_range(question),
            "unit": question.unit.value,
            "decimals": question.decimals,
            "color": {"mode": "thresholds"},
        },
        overrides=counted(question.colours),
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


def _range(question: Question) -> Json:
    """What grafanalib takes as whole numbers only, or not at all."""
    return {"min": question.least, "max": question.most, "noValue": question.no_data}
