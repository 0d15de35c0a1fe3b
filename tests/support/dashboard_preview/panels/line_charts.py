"""Time series: lines, shares of a stack, and the bounds they should keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dashboard_preview import axis_ticks
from dashboard_preview.markup import Markup, element, number, together
from dashboard_preview.panels import chart_frame as framing
from dashboard_preview.panels.legend import Entry, height, legend
from dashboard_preview.value_colours import css, of_series, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dashboard_preview.annotation_marks import Mark
    from dashboard_preview.data_frames import Series
    from dashboard_preview.grafana_json.dashboard_json import Panel
    from dashboard_preview.grafana_json.field_config import Look, Looks
    from dashboard_preview.panel_data import Data
    from dashboard_preview.panels.chart_frame import Frame

_BETWEEN: Final = 34.0
"""Pixels that levels keep from each other."""
_PADDING: Final = 0.1
_GUTTER: Final = 110.0
_FAR: Final = 10_000.0
_GAP: Final = 1.5
"""Steps; points further apart are not joined."""
Points = list[tuple[float, float, float]]
"""Times, what they stand on, and what they reach."""


def chart(
    panel: Panel, looks: Looks, data: Data, marks: Sequence[Mark], size: tuple[float, float]
) -> Markup:
    """The lines of *data*, with their legend below, in a box of *size* pixels."""
    each_look = [looks.of(series.name) for series in data.series]
    colours = [
        of_series(look, n, series.last)
        for n, (look, series) in enumerate(zip(each_look, data.series, strict=True))
    ]
    entries = [
        Entry(series.name, colour, shown(look, series.last).text if _calculated(panel) else "")
        for series, look, colour in zip(data.series, each_look, colours, strict=True)
    ]
    below = height(entries, size) if panel.options["legend"]["showLegend"] else 0.0
    drawn = (size[0], size[1] - below)
    lines = _stacked(data.series, each_look)
    frame, rows = _frame(data, looks.defaults, lines, drawn)
    parts = [framing.levels(frame, rows), framing.times(frame), framing.marked(frame, marks)]
    if looks.defaults.dashed:
        parts.append(_bounds(frame, looks.defaults))
    drawing = (
        _line(frame, points, look, colour, data.step)
        for points, look, colour in zip(lines, each_look, colours, strict=True)
    )
    parts.append(framing.clipped(frame, *drawing))
    return together(
        (framing.svg(drawn, *parts, label=panel.title), legend(entries, below) if below else "")
    )


def _calculated(panel: Panel) -> bool:
    return bool(panel.options["legend"]["calcs"])


def _stacked(every: Sequence[Series], each_look: Sequence[Look]) -> list[Points]:
    """Points of each series; what is stacked stands on what was before it."""
    ground: dict[float, float] = {}
    found = []
    for series, look in zip(every, each_look, strict=True):
        points = []
        for at, value in series.points:
            below = ground.get(at, 0.0) if look.stacked else 0.0
            points.append((at, below, below + value))
            if look.stacked:
                ground[at] = below + value
        found.append(points)
    return found


def _frame(
    data: Data, look: Look, lines: Sequence[Points], size: tuple[float, float]
) -> tuple[Frame, tuple[axis_ticks.Tick, ...]]:
    low, high = _range([value for points in lines for _, _, value in points], look)
    rows = axis_ticks.numbers(low, high, max(int(size[1] / _BETWEEN), 2), look.unit)
    gutter = framing.gutter([each.text for each in rows], _GUTTER)
    return framing.framed(data.span, size, gutter, (low, high)), rows


def _range(values: Sequence[float], look: Look) -> tuple[float, float]:
    """What the axis holds: fixed ends, else the values with a tenth around them.

    As in Grafana the axis never goes below zero for values that do not.
    """
    finite = [each for each in values if abs(each) != float("inf")]
    lowest, highest = min(finite, default=0.0), max(finite, default=0.0)
    around = (highest - lowest or abs(highest) or 1.0) * _PADDING
    low, high = lowest - around, highest + around
    if low < 0 <= lowest:
        low = 0.0
    if highest <= 0 < high and highest != lowest:
        high = 0.0
    low = look.least if look.least is not None else low
    high = look.most if look.most is not None else high
    return (low, high) if low < high else (low, low + 1.0)


def _line(frame: Frame, points: Points, look: Look, colour: str, step: float) -> Markup:
    runs = list(_runs(points, step * _GAP))
    path = " ".join(
        "M"
        + " L".join(f"{number(frame.x(at))} {number(_y(frame, top))}" for at, _, top in run)
        # A point alone is seen as the round end of a line without length.
        + ("h0" if len(run) == 1 else "")
        for run in runs
    )
    parts = []
    if look.fill:
        parts += [
            element(
                "polygon",
                points=_area(frame, run),
                fill=colour,
                fill_opacity=look.fill / 100,
            )
            for run in runs
        ]
    parts.append(element("path", d=path, stroke=colour, class_="line"))
    return together(parts)


def _area(frame: Frame, run: Points) -> str:
    over = [(at, top) for at, _, top in run]
    under = [(at, below) for at, below, _ in reversed(run)]
    return " ".join(
        f"{number(frame.x(at))},{number(_y(frame, value))}" for at, value in (*over, *under)
    )


def _y(frame: Frame, value: float) -> float:
    """A number also for what is infinite; what is beyond a fixed end is cut off."""
    return min(max(frame.y(value), frame.top - _FAR), frame.bottom + _FAR)


def _runs(points: Points, gap: float) -> Iterator[Points]:
    run: Points = []
    for point in points:
        if run and point[0] - run[-1][0] > gap:
            yield run
            run = []
        run.append(point)
    if run:
        yield run


def _bounds(frame: Frame, look: Look) -> Markup:
    parts = [
        element(
            "line",
            x1=frame.left,
            y1=frame.y(step.bound),
            x2=frame.right,
            y2=frame.y(step.bound),
            stroke=css(step.colour),
        )
        for step in look.steps
        if step.bound is not None and frame.low <= step.bound <= frame.high
    ]
    return element("g", *parts, class_="bounds")
