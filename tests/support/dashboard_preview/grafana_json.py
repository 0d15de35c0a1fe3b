"""Dashboards parsed from Grafana's JSON: panels, variables, annotations, links, field styles.

A setting that the preview cannot draw raises ValueError, since a picture without it would differ
from Grafana's.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dashboard_preview import grafana_units
from dashboard_preview.data_frames import STEPS
from mm2slo_core.quantity_text import parse_duration

Json = dict[str, Any]

TEXT: Final = "text"
"""Grafana's name of the default text colour."""
_HEX: Final = re.compile(r"#[0-9A-Fa-f]{6}")


@dataclass(frozen=True, slots=True)
class Step:
    """The colour of values from `bound` on; the first step has no bound."""

    bound: float | None
    colour: str


@dataclass(frozen=True, slots=True)
class MappedValue:
    """The text and colour of a mapped value."""

    text: str
    colour: str | None


@dataclass(frozen=True, slots=True)
class MappedRange(MappedValue):
    """The text and colour of values from `start` to `end`, both included."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RowLink:
    """A link of a cell; its address may refer to other cells of the row."""

    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldStyle:
    """The style of a field; `mode` says how its colour is derived from `colour`."""

    unit: str = "none"
    decimals: int | None = None
    least: float | None = None
    most: float | None = None
    steps: tuple[Step, ...] = (Step(None, TEXT),)
    mapped: Mapping[str, MappedValue] = field(default_factory=dict)
    ranges: tuple[MappedRange, ...] = ()
    mode: str = "thresholds"
    colour: str = TEXT
    no_value: str = ""
    links: tuple[RowLink, ...] = ()
    cell: str = "auto"
    fill: int = 0
    stacked: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class FieldStyles:
    """The default style of fields, and overrides by name."""

    defaults: FieldStyle
    overrides: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    def of(self, name: str) -> FieldStyle:
        """The style of the field *name*."""
        style = self.defaults
        for wanted, properties in self.overrides:
            if wanted == name:
                for key, value in properties:
                    style = _with(style, key, value, f"override of {name!r}")
        return style


def styles(config: Json, where: str) -> FieldStyles:
    """A panel's `fieldConfig`; ValueError, naming *where*, for an unknown setting."""
    defaults = FieldStyle()
    for key, value in _flat(config["defaults"]):
        defaults = _with(defaults, key, value, where)
    overrides = []
    for each in config["overrides"]:
        if each["matcher"]["id"] != "byName":
            raise _unknown(where, "way to choose fields", each["matcher"]["id"])
        properties = tuple((one["id"], one["value"]) for one in each["properties"])
        name = each["matcher"]["options"]
        for key, value in properties:
            _with(defaults, key, value, f"{where}, override of {name!r}")
        overrides.append((name, properties))
    return FieldStyles(defaults, tuple(overrides))


def colour(value: str, where: str) -> str:
    """*value* itself, when it is `#` with six digits or `text`."""
    if value != TEXT and not _HEX.fullmatch(value):
        raise _unknown(where, "colour", value)
    return value


def _flat(defaults: Json) -> list[tuple[str, Any]]:
    custom = defaults.get("custom", {})
    rest = [(key, value) for key, value in defaults.items() if key != "custom"]
    return [*rest, *((f"custom.{key}", value) for key, value in custom.items())]


def _with(style: FieldStyle, key: str, value: Any, where: str) -> FieldStyle:
    if key in _DRAWN:
        if value not in _DRAWN[key]:
            raise _unknown(where, f"value of {key}", value)
        return style
    if key not in _PROPERTIES:
        raise _unknown(where, "property of a field", key)
    return replace(style, **_PROPERTIES[key](value, where))


def _unit(value: Any, where: str) -> Json:
    if value != grafana_units.MOMENT and value not in grafana_units.SCALES:
        raise _unknown(where, "unit", value)
    return {"unit": value}


def _thresholds(value: Any, where: str) -> Json:
    if value["mode"] != "absolute":
        raise _unknown(where, "mode of thresholds", value["mode"])
    steps = tuple(Step(each["value"], colour(each["color"], where)) for each in value["steps"])
    return {"steps": steps}


def _mappings(value: Any, where: str) -> Json:
    mapped: dict[str, MappedValue] = {}
    ranges: list[MappedRange] = []
    for each in value:
        if each["type"] == "range":
            options, result = each["options"], each["options"]["result"]
            start, end = options["from"], options["to"]
            bounds = (-math.inf if start is None else start, math.inf if end is None else end)
            ranges.append(MappedRange(result["text"], colour(result["color"], where), *bounds))
            continue
        if each["type"] != "value":
            raise _unknown(where, "kind of value mapping", each["type"])
        for key, result in each["options"].items():
            tint = result.get("color")
            mapped[key] = MappedValue(result["text"], tint and colour(tint, where))
    return {"mapped": mapped, "ranges": tuple(ranges)}


def _colour(value: Any, where: str) -> Json:
    if value["mode"] not in ("thresholds", "fixed", "palette-classic"):
        raise _unknown(where, "mode of colours", value["mode"])
    return {"mode": value["mode"], "colour": colour(value.get("fixedColor", TEXT), where)}


def _cell(value: Any, where: str) -> Json:
    if value not in _CELLS:
        raise _unknown(where, "kind of cell", value)
    return {"cell": value["type"]}


def _row_links(value: Any, _where: str) -> Json:
    return {"links": tuple(RowLink(one["title"], one["url"]) for one in value)}


def _stacking(value: Any, where: str) -> Json:
    if value["mode"] not in ("none", "normal"):
        raise _unknown(where, "way to stack", value["mode"])
    return {"stacked": value["mode"] == "normal"}


def _bounds_drawn(value: Any, where: str) -> Json:
    if value["mode"] not in ("off", "dashed"):
        raise _unknown(where, "way to draw thresholds", value["mode"])
    return {"dashed": value["mode"] == "dashed"}


_CELLS: Final = ({"type": "color-text"}, {"type": "color-background", "mode": "basic"})
_PROPERTIES: Final[Mapping[str, Callable[[Any, str], Json]]] = {
    "unit": _unit,
    "decimals": lambda value, _: {"decimals": value},
    "min": lambda value, _: {"least": value},
    "max": lambda value, _: {"most": value},
    "noValue": lambda value, _: {"no_value": value},
    "thresholds": _thresholds,
    "mappings": _mappings,
    "color": _colour,
    "links": _row_links,
    "custom.cellOptions": _cell,
    "custom.fillOpacity": lambda value, _: {"fill": value},
    "custom.stacking": _stacking,
    "custom.thresholdsStyle": _bounds_drawn,
}
_DRAWN: Final[Mapping[str, tuple[Any, ...]]] = {
    "custom.align": ("auto",),
    "custom.axisLabel": ("",),
    "custom.axisPlacement": ("auto",),
    "custom.barAlignment": (0,),
    "custom.drawStyle": ("line",),
    "custom.filterable": (False,),
    "custom.gradientMode": ("none",),
    "custom.hideFrom": ({"legend": False, "tooltip": False, "viz": False},),
    "custom.inspect": (False,),
    "custom.lineInterpolation": ("linear",),
    "custom.lineWidth": (0, 2),
    "custom.pointSize": (5,),
    "custom.scaleDistribution": ({"log": 2, "type": "linear"},),
    "custom.showPoints": ("never",),
    "custom.spanNulls": (False,),
}
"""Settings that are drawn in one way only, with the allowed values."""


_ANY: Final = None
_LAST: Final[tuple[Any, ...]] = ([], ["lastNotNull"])
_LEGEND: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "legend.calcs": _LAST,
    "legend.displayMode": ("list",),
    "legend.placement": ("bottom",),
    "legend.showLegend": (True, False),
}
_REDUCED: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "reduceOptions.calcs": (["lastNotNull"],),
    "reduceOptions.fields": ("",),
    "reduceOptions.values": (False,),
}
_POINTED: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "tooltip.mode": _ANY,
    "tooltip.sort": _ANY,
}
_KNOWN: Final[Mapping[str, Mapping[str, tuple[Any, ...] | None]]] = {
    "stat": {
        **_REDUCED,
        "colorMode": ("value", "background"),
        "graphMode": ("none",),
        "justifyMode": ("auto",),
        "orientation": ("auto",),
        "percentChangeColorMode": _ANY,
        "showPercentChange": (False,),
        "textMode": ("value", "value_and_name"),
        "wideLayout": (True,),
    },
    "table": {
        "cellHeight": ("sm",),
        "footer.countRows": (False,),
        "footer.reducer": ([],),
        "footer.show": (False,),
        "frameIndex": (0,),
        "showHeader": (True,),
        "sortBy": _ANY,
    },
    "timeseries": {**_LEGEND, **_POINTED},
    "state-timeline": {
        **_LEGEND,
        **_POINTED,
        "alignValue": ("left",),
        "mergeValues": (True,),
        "perPage": _ANY,
        "rowHeight": (0.9,),
        "showValue": ("auto",),
    },
    "bargauge": {
        **_REDUCED,
        **_LEGEND,
        "displayMode": ("basic",),
        "maxVizHeight": _ANY,
        "minVizHeight": _ANY,
        "minVizWidth": _ANY,
        "namePlacement": ("left",),
        "orientation": ("horizontal",),
        "showUnfilled": (True,),
        "sizing": ("auto",),
        "valueMode": ("color",),
    },
}


def _options(kind: str, options: Json, where: str) -> Json:
    """*options* unchanged."""
    if kind not in _KNOWN:
        raise _unknown(where, "panel of type", kind)
    for path, value in _leaves(options):
        if path not in _KNOWN[kind]:
            raise _unknown(where, f"option of {kind}", path)
        allowed = _KNOWN[kind][path]
        if allowed is not None and value not in allowed:
            raise _unknown(where, f"value of {path} of {kind}", value)
    return options


def _leaves(options: Json, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


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
_ORGANIZE: Final = frozenset({"excludeByName", "indexByName", "renameByName"})
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


def dashboard(document: Json, where: str) -> Dashboard:
    """*document* as a dashboard; ValueError, naming *where*, for what the preview cannot draw."""
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
        if panel["collapsed"]:
            raise _unknown(here, "row", "collapsed")
        return Panel(kind=ROW, title=title, place=place)
    _only(panel, _PANEL, "setting of a panel", here)
    return Panel(
        kind=panel["type"],
        title=title,
        place=place,
        description=panel["description"],
        targets=tuple(_target(each, here) for each in panel["targets"]),
        transformations=tuple(_transformation(each, here) for each in panel["transformations"]),
        options=_options(panel["type"], panel["options"], here),
        styles=styles(panel["fieldConfig"], here),
        links=_links(panel["links"]),
        least=parse_duration(panel["interval"]) if "interval" in panel else 0.0,
        points=panel.get("maxDataPoints", 0),
        last=parse_duration(panel["timeFrom"]) if "timeFrom" in panel else 0.0,
    )


def _only(found: Json, known_keys: frozenset[str], what: str, where: str) -> None:
    if unknown := found.keys() - known_keys:
        raise _unknown(where, what, min(unknown))


def _unknown(where: str, what: str, value: object) -> ValueError:
    return ValueError(f"{where}: the preview does not know the {what} {value!r}")


def _target(target: Json, where: str) -> Target:
    _only(target, _TARGET, "setting of a query", where)
    if target["format"] not in _FORMATS:
        raise _unknown(where, "format", target["format"])
    return Target(
        letter=target["refId"],
        expr=target["expr"],
        legend=target["legendFormat"],
        instant=target["instant"],
        format=target["format"],
    )


def _transformation(transformation: Json, where: str) -> Json:
    name, options = transformation["id"], transformation["options"]
    if name not in STEPS:
        raise _unknown(where, "transformation", name)
    _only(options, _ORGANIZE if name == "organize" else frozenset(), f"option of {name}", where)
    return transformation


def _links(links: Sequence[Json]) -> tuple[Link, ...]:
    """Links with an address; the list of dashboards comes from those that are drawn."""
    return tuple(Link(each["title"], each["url"]) for each in links if each["type"] == "link")


def _variable(variable: Json, where: str) -> Variable:
    query = variable["query"]
    if variable["type"] != "query" or not query.startswith(_LABEL_VALUES):
        raise _unknown(where, f"query of the variable {variable['name']!r}", query)
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
