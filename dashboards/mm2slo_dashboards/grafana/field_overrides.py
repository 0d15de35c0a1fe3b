"""Field configuration of panels: thresholds, value mappings and overrides by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Thresholds
from mm2slo_dashboards.state_mappings import NEUTRAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_dashboards.dashboard_links import Link
    from mm2slo_dashboards.dashboard_model import Below, Column, State

Json = dict[str, Any]
CELL: Final = "custom.cellOptions"
_JUST_BELOW: Final = 1e-9
_NO_VALUE: Final = "–"  # noqa: RUF001 - an en dash


def without_none(fields: Json) -> Json:
    """*fields* without those that are not set."""
    return {name: value for name, value in fields.items() if value is not None}


def convert_thresholds(thresholds: Thresholds | None) -> Json:
    """The colours by value; the first one applies below every bound."""
    chosen = thresholds or NEUTRAL
    steps: list[Json] = [{"color": chosen.base.value, "value": None}]
    steps += [{"color": colour.value, "value": float(bound)} for bound, colour in chosen.bounds]
    return {"mode": "absolute", "steps": steps}


def convert_mappings(states: Sequence[State], below: Below | None = None) -> list[Json]:
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


def colour_overrides(colours: Mapping[str, str]) -> list[Json]:
    """Overrides that set the colour of series by name."""
    return [
        _override(name, ("color", {"mode": "fixed", "fixedColor": str(colour)}))
        for name, colour in colours.items()
    ]


def count_overrides(colours: Mapping[str, str]) -> list[Json]:
    """Overrides for counts by name: the colour from 1 on, neutral at 0."""
    return [
        _override(name, ("thresholds", convert_thresholds(_from_one(colour))))
        for name, colour in colours.items()
    ]


def _from_one(colour: str) -> Thresholds:
    return Thresholds(Colour.NEUTRAL, ((1.0, Colour(colour)),))


def column_override(column: Column) -> Json:
    """The override of a table's value column."""
    properties: list[tuple[str, object]] = [("unit", column.unit.value), ("noValue", _NO_VALUE)]
    if column.decimals is not None:
        properties.append(("decimals", column.decimals))
    if mappings := convert_mappings(column.states, column.below):
        properties.append(("mappings", mappings))
    if any(state.colour is not Colour.NEUTRAL for state in column.states):
        properties.append((CELL, {"type": "color-background", "mode": "basic"}))
    elif column.thresholds is not None:
        properties += [
            ("thresholds", convert_thresholds(column.thresholds)),
            ("color", {"mode": "thresholds"}),
            (CELL, {"type": "color-text"}),
        ]
    return _override(column.title, *properties)


def empty_cell_override(name: str) -> Json:
    """The override that shows empty cells of the column *name* as a dash.

    Grafana would show the panel's text for no data in each.
    """
    return _override(name, ("noValue", _NO_VALUE))


def link_override(name: str, *links: Link) -> Json:
    """The override that adds *links* to the column *name*."""
    value = [
        {"title": link.title, "url": link.address, "targetBlank": link.external} for link in links
    ]
    return _override(name, ("links", value))


def _override(name: str, *properties: tuple[str, object]) -> Json:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties],
    }
