"""Field configuration: unit, thresholds, value mappings, colours and overrides."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dashboard_preview import grafana_units
from mm2slo_core.user_errors import UserError

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
    outside: bool


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
    """A panel's `fieldConfig`; UserError, naming *where*, for an unknown setting."""
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


def _unknown(where: str, what: str, value: object) -> UserError:
    return UserError(f"{where}: the preview does not know the {what} {value!r}")


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


def _links(value: Any, _where: str) -> Json:
    return {"links": tuple(RowLink(one["title"], one["url"], one["targetBlank"]) for one in value)}


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
    "unit": lambda value, where: {"unit": grafana_units.known(value, where)},
    "decimals": lambda value, _: {"decimals": value},
    "min": lambda value, _: {"least": value},
    "max": lambda value, _: {"most": value},
    "noValue": lambda value, _: {"no_value": value},
    "thresholds": _thresholds,
    "mappings": _mappings,
    "color": _colour,
    "links": _links,
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
