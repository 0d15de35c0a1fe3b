"""A dashboard parsed from Grafana's JSON: panels, variables, annotations, links."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dashboard_preview.grafana_json.field_config import FieldStyles, colour, styles
from dashboard_preview.grafana_json.panel_options import checked
from dashboard_preview.time_range import length
from dashboard_preview.transformations import known
from mm2slo_core.user_errors import UserError

Json = dict[str, Any]
ROW: Final = "row"
_SOURCE: Final = "datasource"
_FORMATS: Final = ("time_series", "table")
_PANEL: Final = frozenset(
    (
        *("datasource", "description", "fieldConfig", "gridPos", "id", "interval", "links"),
        *("maxDataPoints", "options", "targets", "timeFrom", "title", "transformations"),
        *("transparent", "type"),
    )
)
_TARGET: Final = frozenset(
    (
        *("datasource", "editorMode", "expr", "format", "instant", "legendFormat", "range"),
        "refId",
    )
)
_LABEL_VALUES: Final = "label_values("


@dataclass(frozen=True, slots=True)
class Place:
    """A position in Grafana's grid of 24 columns."""

    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True, slots=True)
class Target:
    """One query of a panel."""

    letter: str
    expr: str
    legend: str
    instant: bool
    format: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a panel or a board; `url` may hold variables."""

    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel; rows have only a title and a place.

    `least` is the minimum interval between points in seconds, `points` their maximum number (0 for
    one a pixel), `last` the panel's own time range in seconds, used while the dashboard's is
    relative to now; 0 for none.
    """

    kind: str
    title: str
    place: Place
    description: str = ""
    targets: tuple[Target, ...] = ()
    transformations: tuple[Json, ...] = ()
    styles: FieldStyles | None = None
    options: Json = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    least: float = 0.0
    points: int = 0
    last: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable: values of `label` on the series `match`; `all_values` is the value of All."""

    name: str
    title: str
    label: str
    match: str
    multi: bool
    all_values: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Vertical marks in every chart; with `value_is_time` samples are times in milliseconds."""

    title: str
    expr: str
    text: str
    colour: str
    value_is_time: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard; `since` and `until` are its default time range, as in `now-6h`.

    `source` is the variable of the data source and its value.
    """

    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    source: tuple[str, str] | None
    variables: tuple[Variable, ...]
    marks: tuple[Annotation, ...]
    links: tuple[Link, ...]
    since: str
    until: str


def dashboards(folder: Path) -> tuple[Dashboard, ...]:
    """The dashboards of the JSON files in *folder*, by file name.

    Raises UserError without such files, or when one is not as `mm2slo dashboards generate` writes.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise UserError(f"no dashboards in {folder}; write them with `mm2slo dashboards generate`")
    found = []
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} cannot be read as JSON: {error}") from None
        found.append(dashboard(document, str(path)))
    return tuple(found)


def dashboard(document: Json, where: str) -> Dashboard:
    """*document* as a dashboard; UserError, naming *where*, for what the preview cannot draw."""
    try:
        return _dashboard(document, where)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{where} is not as `mm2slo dashboards generate` writes dashboards "
            f"({type(error).__name__}: {error}); generate it again"
        ) from None


def _dashboard(document: Json, where: str) -> Dashboard:
    listed = [each for each in document["templating"]["list"] if each["type"] != _SOURCE]
    sources = [each for each in document["templating"]["list"] if each["type"] == _SOURCE]
    return Dashboard(
        uid=document["uid"],
        title=document["title"],
        description=document["description"],
        panels=tuple(_panel(each, where) for each in document["panels"]),
        source=(sources[0]["name"], sources[0]["current"]["value"]) if sources else None,
        variables=tuple(_variable(each, where) for each in listed),
        marks=tuple(_marks(each, where) for each in document["annotations"]["list"]),
        links=_links(document["links"]),
        since=document["time"]["from"],
        until=document["time"]["to"],
    )


def _panel(panel: Json, where: str) -> Panel:
    title, grid = panel["title"], panel["gridPos"]
    place = Place(grid["x"], grid["y"], grid["w"], grid["h"])
    here = f"{where}, panel {title!r}"
    if panel["type"] == ROW:
        if panel["collapsed"] or panel["panels"]:
            raise UserError(f"{here}: the preview does not know collapsed rows")
        return Panel(kind=ROW, title=title, place=place)
    _only(panel, _PANEL, "setting of a panel", here)
    return Panel(
        kind=panel["type"],
        title=title,
        place=place,
        description=panel["description"],
        targets=tuple(_target(each, here) for each in panel["targets"]),
        transformations=tuple(known(each, here) for each in panel["transformations"]),
        options=checked(panel["type"], panel["options"], here),
        styles=styles(panel["fieldConfig"], here),
        links=_links(panel["links"]),
        least=length(f"{here}: interval", panel["interval"]) if "interval" in panel else 0.0,
        points=panel.get("maxDataPoints", 0),
        last=length(f"{here}: timeFrom", panel["timeFrom"]) if "timeFrom" in panel else 0.0,
    )


def _only(found: Json, known_keys: frozenset[str], what: str, where: str) -> None:
    if unknown := found.keys() - known_keys:
        raise UserError(f"{where}: the preview does not know the {what} {min(unknown)!r}")


def _target(target: Json, where: str) -> Target:
    _only(target, _TARGET, "setting of a query", where)
    if target["format"] not in _FORMATS:
        raise UserError(f"{where}: the preview does not know the format {target['format']!r}")
    return Target(
        letter=target["refId"],
        expr=target["expr"],
        legend=target["legendFormat"],
        instant=target["instant"],
        format=target["format"],
    )


def _links(links: Sequence[Json]) -> tuple[Link, ...]:
    """Links with an address; the list of dashboards comes from those that are drawn."""
    return tuple(Link(each["title"], each["url"]) for each in links if each["type"] == "link")


def _variable(variable: Json, where: str) -> Variable:
    query = variable["query"]
    if variable["type"] != "query" or not query.startswith(_LABEL_VALUES):
        raise UserError(
            f"{where}, variable {variable['name']!r}: the preview knows label_values() alone"
        )
    match, _, label = query.removeprefix(_LABEL_VALUES).removesuffix(")").rpartition(",")
    return Variable(
        name=variable["name"],
        title=variable["label"],
        label=label.strip(),
        match=match,
        multi=variable["includeAll"],
        all_values=variable.get("allValue", ".*"),
    )


def _marks(annotation: Json, where: str) -> Annotation:
    here = f"{where}, annotation {annotation['name']!r}"
    return Annotation(
        title=annotation["name"],
        expr=annotation["expr"],
        text=annotation["textFormat"],
        colour=colour(annotation["iconColor"], here),
        value_is_time=annotation["useValueForTime"],
    )
