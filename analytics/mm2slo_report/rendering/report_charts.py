"""Geometry of the charts of a page, in SVG units: budget burn-down, latency, map of flows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import count, pairwise, takewhile
from typing import Final, NamedTuple

from mm2slo_core.audit.unit_outcome import percentile_name
from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.quantity_text import signed_share_text, spent_share_text
from mm2slo_core.reporting.report_entry import BudgetPart
from mm2slo_core.reporting.slo_report import are_days
from mm2slo_core.topology import Flow
from mm2slo_report.flow_audit_figures import LatencyEstimate
from mm2slo_report.rendering.page_views import LatencyView
from mm2slo_report.rendering.report_text import day_text, duration_text

WIDTH: Final = 640.0
HEIGHT: Final = 230.0
LEFT: Final = 58.0
RIGHT: Final = 14.0
TOP: Final = 14.0
BOTTOM: Final = 30.0
_MAX_TICKS: Final = 6
_MAX_LABELS: Final = 7
_LINE: Final = 16.0
_MIN_LABELED_SHARE: Final = 0.05


class Tick(NamedTuple):
    """A position on an axis, and its label."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnDown:
    """The line of the remaining budget, the areas it encloses, and the costliest part."""

    line: str
    left: str
    """Polygon between the line and zero, above zero."""
    overspent: str
    """The same below zero; may be empty."""
    even: str
    """The line of a budget spent evenly."""
    zero: float
    end: tuple[float, float]
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    worst: tuple[float, float, str, str] | None
    """Label of the costliest part: x, y, text, text anchor."""
    names: tuple[str, ...]
    """Of the parts: `14 Jul`, `10:30`, or `14 Jul 10:30`."""
    steps: str
    """`by day`, or `in steps of 5 min`."""
    summary: str


def burn_down(days: Sequence[BudgetPart], zone: tzinfo, *, whole_end: int) -> BurnDown | None:
    """The chart of *days* or shorter parts; None without a budget.

    *whole_end* is the end of the budget's window, later than the last day of a running period.
    """
    if not days or all(each.consumed is None for each in days):
        return None
    levels = [1.0]
    for each in days:
        levels.append(levels[-1] - (each.consumed or 0.0))
    frame = _Frame(days[0].start, max(whole_end, days[-1].end), min(0.0, *levels))
    times = [days[0].start, *(each.end for each in days)]
    points = _with_crossing(list(zip(times, levels, strict=True)))
    daily = are_days(days[0].start, whole_end)
    names = _part_names(days, zone, daily=daily)
    summary = f"{signed_share_text(levels[-1])} remaining."
    costly = max(range(len(days)), key=lambda number: days[number].consumed or 0.0)
    if spent := days[costly].consumed:
        part = f"{'day' if daily else 'step'}: {names[costly]}"
        summary += f" Costliest {part} ({spent_share_text(spent)} of the budget)."
    longest = max(each.end - each.start for each in days)
    every = max(1, -(-len(days) // _MAX_LABELS))
    return BurnDown(
        line=frame.path(points),
        left=frame.area([(at, max(level, 0.0)) for at, level in points]),
        overspent=(
            frame.area([(at, min(level, 0.0)) for at, level in points]) if min(levels) < 0 else ""
        ),
        even=frame.path([(frame.start, 1.0), (frame.end, 0.0)]),
        zero=frame.y(0.0),
        end=(frame.x(times[-1]), frame.y(levels[-1])),
        rows=tuple(Tick(frame.y(each), f"{each * 100:.0f} %") for each in _rows(frame.low)),
        columns=tuple(
            Tick(frame.x(each.start), name)
            for each, name in zip(days[::every], names[::every], strict=True)
        ),
        worst=_costliest_label(days[costly], levels[costly], names[costly], frame),
        names=names,
        steps="by day" if daily else f"in steps of {duration_text(longest / 1000)}",
        summary=summary,
    )


class _Frame(NamedTuple):
    start: int
    end: int
    low: float

    def x(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - self.start) / (self.end - self.start)

    def y(self, level: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - level) / (1.0 - self.low)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + " L".join(f"{self.x(at):.1f} {self.y(level):.1f}" for at, level in points)

    def area(self, points: Sequence[tuple[float, float]]) -> str:
        closed = [(points[0][0], 0.0), *points, (points[-1][0], 0.0)]
        return " ".join(f"{self.x(at):.1f},{self.y(level):.1f}" for at, level in closed)


def _with_crossing(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    """*points*, with an extra point where the line crosses zero."""
    found: list[tuple[float, float]] = [points[0]]
    for (at, level), (then, next_level) in pairwise(points):
        if level > 0 > next_level:
            found.append((at + (then - at) * level / (level - next_level), 0.0))
        found.append((then, next_level))
    return found


def _rows(low: float) -> list[float]:
    """Axis labels: 100 %, 0 % and a few between and below."""
    step = 0.25
    for factor in (2, 2, 2.5, 2) * 8:
        if (1.0 - low) / step <= _MAX_TICKS:
            break
        step *= factor
    # Far below zero, the labels 100 % and 0 % would overlap.
    top = [1.0] if (1.0 - low) * _LINE < HEIGHT - TOP - BOTTOM else []
    return [
        *top,
        *takewhile(lambda level: level < 1.0, count(0.0, step)),
        *takewhile(lambda level: level >= low, count(-step, -step)),
    ]


def _costliest_label(
    day: BudgetPart, level: float, name: str, frame: _Frame
) -> tuple[float, float, str, str] | None:
    """At *day*, in the middle between the *level* at its start and that at its end."""
    consumed = day.consumed or 0.0
    if consumed < _MIN_LABELED_SHARE:
        return None
    x, y = frame.x(day.end), frame.y(level - consumed / 2)
    text = f"{name}: {spent_share_text(consumed)} spent"
    late = x > LEFT + (WIDTH - LEFT - RIGHT) * 0.6
    return (frame.x(day.start) - 8 if late else x + 8, y, text, "end" if late else "start")


def _part_names(days: Sequence[BudgetPart], zone: tzinfo, *, daily: bool) -> tuple[str, ...]:
    if daily:
        return tuple(day_text(each.start, zone) for each in days)
    starts = [datetime.fromtimestamp(each.start / 1000, zone) for each in days]
    is_one_day = starts[0].date() == starts[-1].date()
    return tuple(
        f"{start:%H:%M}" if is_one_day else f"{day_text(each.start, zone)} {start:%H:%M}"
        for each, start in zip(days, starts, strict=True)
    )


def end_text(start: int, end: int, zone: tzinfo) -> str:
    """`10:42`, with the date if it differs from that of *start*."""
    first, last = (datetime.fromtimestamp(at / 1000, zone) for at in (start, end))
    return f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"


LATENCY_WIDTH: Final = 640.0
LATENCY_LEFT: Final = 58.0
_RIGHT: Final = 24.0
_TOP: Final = 24.0
_ROW: Final = 30.0
_BOTTOM: Final = 30.0

_LEAST: Final = 0.001
"""Seconds: a logarithmic axis has no zero."""


class Bar(NamedTuple):
    """One percentile, known to lie between `start` and `end`."""

    name: str
    y: float
    start: float
    end: float
    open: bool
    """The lower bound is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyChart:
    """Bars on a logarithmic axis, and the thresholds of the objectives."""

    height: float
    floor: float
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    thresholds: tuple[Tick, ...]
    summary: str


def latency_chart(view: LatencyView, thresholds: Sequence[float] = ()) -> LatencyChart:
    """The chart of *view*; *thresholds* are in seconds."""
    known = [each.upper for each in view.percentiles.values()] + [*thresholds]
    known += [each.lower for each in view.percentiles.values() if each.lower is not None]
    low = math.floor(math.log10(max(min(known, default=_LEAST), _LEAST)))
    high = max(math.ceil(math.log10(max(max(known, default=1.0), _LEAST))), low + 1)

    def x(seconds: float) -> float:
        place = (math.log10(max(seconds, 10.0**low)) - low) / (high - low)
        return LATENCY_LEFT + (LATENCY_WIDTH - LATENCY_LEFT - _RIGHT) * place

    floor = _TOP + _ROW * len(view.percentiles)
    return LatencyChart(
        height=floor + _BOTTOM,
        floor=floor,
        bars=tuple(
            Bar(
                percentile_name(q),
                _TOP + _ROW * (number + 0.5),
                x(each.lower or 0.0),
                x(each.upper),
                each.lower is None,
            )
            for number, (q, each) in enumerate(view.percentiles.items())
        ),
        ticks=tuple(Tick(x(10.0**power), _decade(power)) for power in range(low, high + 1)),
        thresholds=tuple(Tick(x(each), duration_text(each)) for each in sorted(set(thresholds))),
        summary="; ".join(
            f"{percentile_name(q)} {bounds_text(each)}" for q, each in view.percentiles.items()
        ),
    )


def _decade(power: int) -> str:
    return f"{10 ** (power + 3):,} ms" if power < 0 else f"{10**power:,} s"


def bounds_text(found: LatencyEstimate) -> str:
    """The bounds as text; one value if they agree."""
    if found.lower is None:
        return f"at most {duration_text(found.upper, up=True)}"
    lower, upper = duration_text(found.lower), duration_text(found.upper, up=True)
    return upper if lower == upper else f"{lower} to {upper}"


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


class MapPoint(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFlow:
    """A flow to draw: *text* as its label, color and icon by *status*."""

    flow: Flow
    status: Status
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapNode:
    """A cluster: its center, and half of its width and height."""

    name: str
    shown: str
    at: MapPoint
    half_width: float
    half_height: float = _HALF_HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEdge(MapFlow):
    """A drawn flow: a path, an arrow head, and the center of its label."""

    path: str
    arrow: str
    label: MapPoint
    label_half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowMap:
    """The map within [left, left + width) and [top, top + height), without `left_out` flows."""

    left: float
    top: float
    width: float
    height: float
    nodes: tuple[MapNode, ...]
    edges: tuple[MapEdge, ...]
    left_out: int


class Box(NamedTuple):
    """A rectangle by its center and half its width and height."""

    at: MapPoint
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


def _places(ring: Sequence[str], hub: str | None) -> dict[str, MapPoint]:
    """On an ellipse, starting at its left; two clusters side by side."""
    if len(ring) <= _PAIR and hub is None:
        return {name: MapPoint(_CLUSTER_DISTANCE * number, 0.0) for number, name in enumerate(ring)}
    across, down = max(290.0, 40.0 * len(ring)), max(150.0, 26.0 * len(ring))
    if hub is not None:
        across, down = across * 1.15, down * 1.25
    found = {}
    for number, name in enumerate(ring):
        angle = math.tau * number / len(ring) - math.pi
        found[name] = MapPoint(across * math.cos(angle), down * math.sin(angle))
    return found if hub is None else {**found, hub: MapPoint(0.0, 0.0)}


def _node(name: str, at: MapPoint) -> MapNode:
    shown = name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"
    return MapNode(
        name=name, shown=shown, at=at, half_width=max(38.0, len(shown) * _LETTER / 2 + 16)
    )


def _edge(
    drawn: MapFlow, nodes: Mapping[str, MapNode], taken: Sequence[Box], *, opposed: bool
) -> MapEdge:
    source, target = nodes[drawn.flow.source], nodes[drawn.flow.target]
    across = MapPoint(target.at.x - source.at.x, target.at.y - source.at.y)
    # Opposite flows both bend to their left, which keeps them apart.
    bend = _BEND / max(math.hypot(*across), 1.0) if opposed else 0.0
    control = MapPoint(
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
    return MapEdge(
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
) -> MapPoint:
    """A free position for a label on the *curve*, nearest to its middle."""
    for share in _LABEL_POSITIONS:
        place = curve.at(start + (end - start) * share)
        box = Box(place, half_width, LABEL_HALF_HEIGHT)
        if not any(box.overlaps(each) for each in taken):
            return place
    return curve.at(start + (end - start) / 2)


class _Curve(NamedTuple):
    start: MapPoint
    control: MapPoint
    end: MapPoint

    def at(self, t: float) -> MapPoint:
        """Quadratic Bézier."""
        a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
        return MapPoint(
            a * self.start.x + b * self.control.x + c * self.end.x,
            a * self.start.y + b * self.control.y + c * self.end.y,
        )


def _within(point: MapPoint, node: MapNode, margin: float) -> bool:
    return (
        abs(point.x - node.at.x) <= node.half_width + margin
        and abs(point.y - node.at.y) <= node.half_height + margin
    )


def _arrow(tip: MapPoint, angle: float) -> str:
    wings = [
        MapPoint(tip.x - _ARROW * math.cos(angle + turn), tip.y - _ARROW * math.sin(angle + turn))
        for turn in (0.42, -0.42)
    ]
    return " ".join(f"{each.x:.1f},{each.y:.1f}" for each in (tip, *wings))
