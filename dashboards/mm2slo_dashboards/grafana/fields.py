"""How figures look in every kind of panel: bounds, words for codes, colours by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from grafanalib.core import Threshold

from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Steps
from mm2slo_dashboards.states import NEUTRAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_dashboards.links import Link
    from mm2slo_dashboards.model import Column, State

Json = dict[str, Any]
CELL: Final = "custom.cellOptions"
_NOTHING: Final = "–"  # noqa: RUF001 - a dash, as people write it


def thresholds(steps: Steps | None) -> list[Threshold]:
    """Grafanalib's thresholds; the first one has no bound."""
    chosen = steps or NEUTRAL
    bounds = [(0.0, chosen.base), *chosen.bounds]
    return [Threshold(colour.value, n, float(value)) for n, (value, colour) in enumerate(bounds)]


def mappings(states: Sequence[State]) -> list[Json]:
    """The word and the colour of each code."""
    if not states:
        return []
    options = {
        str(state.code): {"text": state.word, "color": state.colour.value, "index": n}
        for n, state in enumerate(states)
    }
    return [{"type": "value", "options": options}]


def coloured(colours: Mapping[str, Colour]) -> list[Json]:
    """Overrides that give the series of these names their colour."""
    return [
        _override(name, ("color", {"mode": "fixed", "fixedColor": colour.value}))
        for name, colour in colours.items()
    ]


def counted(colours: Mapping[str, Colour]) -> list[Json]:
    """Overrides for counts by name: each in its colour, and none of them in that of no matter."""
    return [
        _override(
            name,
            ("thresholds", {"mode": "absolute", "steps": thresholds(_from_one(colour))}),
        )
        for name, colour in colours.items()
    ]


def _from_one(colour: Colour) -> Steps:
    return Steps(Colour.NEUTRAL, ((1.0, colour),))


def column(each: Column) -> Json:
    """The override of a table's column of figures."""
    properties: list[tuple[str, object]] = [("unit", each.unit.value), ("noValue", _NOTHING)]
    if each.decimals is not None:
        properties.append(("decimals", each.decimals))
    if each.states:
        properties += [
            ("mappings", mappings(each.states)),
            (CELL, {"type": "color-background", "mode": "basic"}),
        ]
    elif each.steps is not None:
        properties += [
            ("thresholds", {"mode": "absolute", "steps": thresholds(each.steps)}),
            ("color", {"mode": "thresholds"}),
            (CELL, {"type": "color-text"}),
        ]
    return _override(each.title, *properties)


def hollow(name: str) -> Json:
    """The override by which an empty cell of the column *name* says so.

    Grafana would put into each what an empty panel says.
    """
    return _override(name, ("noValue", _NOTHING))


def linked(name: str, *links: Link) -> Json:
    """The override that makes the column *name* lead somewhere."""
    value = [
        {"title": link.title, "url": link.address, "targetBlank": link.outside} for link in links
    ]
    return _override(name, ("links", value))


def _override(name: str, *properties: tuple[str, object]) -> Json:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties],
    }
