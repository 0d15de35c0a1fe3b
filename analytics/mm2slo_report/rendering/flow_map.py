"""Geometry of the map of clusters and flows, in SVG units."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.slo_status import Status
    from mm2slo_core.topology import Flow

LABEL_HALF_HEIGHT: Final = 13.0
_MAX_CLUSTERS: Final = 14
_MAX_NAME_LENGTH: Final = 18
_LETTER: Final = 8.6
"""Width of a letter in a cluster name; labels use _SMALL_LETTER."""
_SMALL_LETTER: Final = 6.9
_HALF_HEIGHT: Final = 20.0
_MARGIN: Final = 8.0
_SPACING: Final = 4.0
_CLUSTER_DISTANCE: Final = 440.0
_BEND: Final = 95.0
_GAP: Final = 4.0
_STEPS: Final = 160
_PARTS: Final = 24
_LABEL_POSITIONS: Final = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8)
_ARROW: Final = 12.0
_PAIR: Final = 2
_HUB: Final = 4
"""Minimum number of clusters to draw one with all flows in the middle."""


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFlow:
    """A flow to draw: *text* as its label, color and icon by *status*."""

    flow: Flow
    status: Status
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A cluster: its center, and half of its width and height."""

    name: str
    shown: str
    at: Point
    half_width: float
    half_height: float = _HALF_HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A flow: a path, an arrow head, and the center of its label."""

    flow: Flow
    status: Status
    text: str
    path: str
    arrow: str
    label: Point
    label_half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowMap:
    """The map within [left, left + width) and [top, top + height), without `left_out` flows."""

    left: float
    top: float
    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int


class Box(NamedTuple):
    """A rectangle by its center and half its width and height."""

    at: Point
    half_width: float
    half_height: float

    def overlaps(self, other: Box) -> bool:
        """Whether the boxes overlap or nearly touch."""
        return (
            abs(self.at.x - other.at.x) < self.half_width + other.half_width + _SPACING
            and abs(self.at.y - other.at.y) < self.half_height + other.half_height + _SPACING
        )


def flow_map(flows: Sequence[MapFlow]) -> FlowMap:
    """The map of *flows*, worst first; too many are cut at the end."""
    drawn = _fitting(flows)
    names = sorted({name for each in drawn for name in (each.flow.source, each.flow.target)})
    hub = _hub(drawn, names)
    places = _places([each for each in names if each != hub], hub)
    nodes = {name: _node(name, places[name]) for name in names}
    taken = {each.flow for each in drawn}
    boxes = [Box(each.at, each.half_width, each.half_height) for each in nodes.values()]
    edges = []
    for each in drawn:
        made = _edge(each, nodes, boxes, opposed=each.flow.reverse in taken)
        boxes.append(Box(made.label, made.label_half_width, LABEL_HALF_HEIGHT))
        edges.append(made)
    left, right = _extent([(box.at.x, box.half_width) for box in boxes])
    top, bottom = _extent([(box.at.y, box.half_height) for box in boxes])
    return FlowMap(
        left=left,
        top=top,
        width=right - left,
        height=bottom - top,
        nodes=tuple(nodes.values()),
        edges=tuple(edges),
        left_out=len(flows) - len(drawn),
    )


def _extent(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    low = min((middle - half for middle, half in parts), default=0.0)
    high = max((middle + half for middle, half in parts), default=0.0)
    return low - _MARGIN, high + _MARGIN


def _fitting(flows: Sequence[MapFlow]) -> list[MapFlow]:
    names: set[str] = set()
    found = []
    for each in flows:
        wanted = names | {each.flow.source, each.flow.target}
        if len(wanted) <= _MAX_CLUSTERS:
            names = wanted
            found.append(each)
    return found


def _hub(flows: Sequence[MapFlow], names: Sequence[str]) -> str | None:
    if len(names) < _HUB:
        return None
    touched = Counter(name for each in flows for name in (each.flow.source, each.flow.target))
    name, ends = max(touched.items(), key=lambda item: (item[1], item[0]))
    return name if ends == len(flows) else None


def _places(ring: Sequence[str], hub: str | None) -> dict[str, Point]:
    """On an ellipse, starting at its left; two clusters side by side."""
    if len(ring) <= _PAIR and hub is None:
        return {name: Point(_CLUSTER_DISTANCE * number, 0.0) for number, name in enumerate(ring)}
    across, down = max(290.0, 40.0 * len(ring)), max(150.0, 26.0 * len(ring))
    if hub is not None:
        across, down = across * 1.15, down * 1.25
    found = {}
    for number, name in enumerate(ring):
        angle = math.tau * number / len(ring) - math.pi
        found[name] = Point(across * math.cos(angle), down * math.sin(angle))
    return found if hub is None else {**found, hub: Point(0.0, 0.0)}


def _node(name: str, at: Point) -> Node:
    shown = name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"
    return Node(name=name, shown=shown, at=at, half_width=max(38.0, len(shown) * _LETTER / 2 + 16))


def _edge(
    drawn: MapFlow, nodes: Mapping[str, Node], taken: Sequence[Box], *, opposed: bool
) -> Edge:
    source, target = nodes[drawn.flow.source], nodes[drawn.flow.target]
    across = Point(target.at.x - source.at.x, target.at.y - source.at.y)
    # Opposite flows both bend to their left, which keeps them apart.
    bend = _BEND / max(math.hypot(*across), 1.0) if opposed else 0.0
    control = Point(
        (source.at.x + target.at.x) / 2 + across.y * bend,
        (source.at.y + target.at.y) / 2 - across.x * bend,
    )
    curve = _Curve(source.at, control, target.at)
    ticks = [step / _STEPS for step in range(_STEPS + 1)]
    start = max(t for t in ticks if _within(curve.at(t), source, 0.0))
    end = min(t for t in ticks if _within(curve.at(t), target, _GAP)) - 1 / _STEPS
    tip, back = curve.at(end), curve.at(max(end - 0.03, 0.0))
    points = [curve.at(start + (end - start) * step / _PARTS) for step in range(_PARTS + 1)]
    half_width = len(drawn.text) * _SMALL_LETTER / 2 + 20
    return Edge(
        flow=drawn.flow,
        status=drawn.status,
        text=drawn.text,
        path="M" + " L".join(f"{each.x:.1f} {each.y:.1f}" for each in points),
        arrow=_arrow(tip, math.atan2(tip.y - back.y, tip.x - back.x)),
        label=_free(curve, start, end, half_width, taken),
        label_half_width=half_width,
    )


def _free(
    curve: _Curve, start: float, end: float, half_width: float, taken: Sequence[Box]
) -> Point:
    """A free position for a label on the *curve*, nearest to its middle."""
    for share in _LABEL_POSITIONS:
        place = curve.at(start + (end - start) * share)
        box = Box(place, half_width, LABEL_HALF_HEIGHT)
        if not any(box.overlaps(each) for each in taken):
            return place
    return curve.at(start + (end - start) / 2)


class _Curve(NamedTuple):
    start: Point
    control: Point
    end: Point

    def at(self, t: float) -> Point:
        """Quadratic Bézier."""
        a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
        return Point(
            a * self.start.x + b * self.control.x + c * self.end.x,
            a * self.start.y + b * self.control.y + c * self.end.y,
        )


def _within(point: Point, node: Node, margin: float) -> bool:
    return (
        abs(point.x - node.at.x) <= node.half_width + margin
        and abs(point.y - node.at.y) <= node.half_height + margin
    )


def _arrow(tip: Point, angle: float) -> str:
    wings = [
        Point(tip.x - _ARROW * math.cos(angle + turn), tip.y - _ARROW * math.sin(angle + turn))
        for turn in (0.42, -0.42)
    ]
    return " ".join(f"{each.x:.1f},{each.y:.1f}" for each in (tip, *wings))
