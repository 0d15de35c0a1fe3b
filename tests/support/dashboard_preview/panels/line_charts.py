"""Time series: lines, shares of a stack, and the bounds they should keep."""

from collections.abc import Iterator, Sequence
from typing import Final

from dashboard_preview.data_frames import Series
from dashboard_preview.grafana_json import FieldStyle, FieldStyles, Panel
from dashboard_preview.markup import Markup, element, number, together
from dashboard_preview.panel_data import Data, Mark
from dashboard_preview.panels import chart_frame as framing
from dashboard_preview.panels.chart_frame import Entry, Frame, height, legend
from dashboard_preview.value_colours import css, of_series, shown

_BETWEEN: Final = 34.0
"""Minimum pixels between levels."""
_PADDING: Final = 0.1
_GUTTER: Final = 110.0
_FAR: Final = 10_000.0
_JOINED: Final = 1.5
"""Steps; points further apart are not joined."""
Points = list[tuple[float, float, float]]
"""Times with the lower and upper value."""


def chart(
    panel: Panel, styles: FieldStyles, data: Data, marks: Sequence[Mark], size: tuple[float, float]
) -> Markup:
    """The lines of *data*, with their legend below, in a box of *size* pixels."""
    each_style = [styles.of(series.name) for series in data.series]
    colours = [
        of_series(style, n, series.last)
        for n, (style, series) in enumerate(zip(each_style, data.series, strict=True))
    ]
    entries = [
        Entry(
            series.name,
            colour,
            shown(style, series.last).text if panel.options["legend"]["calcs"] else "",
        )
        for series, style, colour in zip(data.series, each_style, colours, strict=True)
    ]
    below = height(entries, size) if panel.options["legend"]["showLegend"] else 0.0
    drawn = (size[0], size[1] - below)
    lines = _stacked(data.series, each_style)
    frame, rows = _frame(data, styles.defaults, lines, drawn)
    parts = [framing.levels(frame, rows), framing.times(frame), framing.marked(frame, marks)]
    if styles.defaults.dashed:
        parts.append(_bounds(frame, styles.defaults))
    drawing = (
        _line(frame, points, style, colour, data.step)
        for points, style, colour in zip(lines, each_style, colours, strict=True)
    )
    parts.append(framing.clipped(frame, *drawing))
    return together(
        (framing.svg(drawn, *parts, label=panel.title), legend(entries, below) if below else "")
    )


def _stacked(every: Sequence[Series], each_style: Sequence[FieldStyle]) -> list[Points]:
    """Points of each series; a stacked series starts at the top of the previous one."""
    ground: dict[float, float] = {}
    found = []
    for series, style in zip(every, each_style, strict=True):
        points = []
        for at, value in series.points:
            below = ground.get(at, 0.0) if style.stacked else 0.0
            points.append((at, below, below + value))
            if style.stacked:
                ground[at] = below + value
        found.append(points)
    return found


def _frame(
    data: Data, style: FieldStyle, lines: Sequence[Points], size: tuple[float, float]
) -> tuple[Frame, tuple[framing.Tick, ...]]:
    low, high = _range([value for points in lines for _, _, value in points], style)
    rows = framing.numbers(low, high, max(int(size[1] / _BETWEEN), 2), style.unit)
    gutter = framing.gutter([each.text for each in rows], _GUTTER)
    return framing.framed(data.span, size, gutter, (low, high)), rows


def _range(values: Sequence[float], style: FieldStyle) -> tuple[float, float]:
    """The ends of the axis: fixed, else the values with a tenth of padding.

    As in Grafana the axis does not go below zero if no value does.
    """
    finite = [each for each in values if abs(each) != float("inf")]
    lowest, highest = min(finite, default=0.0), max(finite, default=0.0)
    around = (highest - lowest or abs(highest) or 1.0) * _PADDING
    low, high = lowest - around, highest + around
    if low < 0 <= lowest:
        low = 0.0
    if highest <= 0 < high and highest != lowest:
        high = 0.0
    low = style.least if style.least is not None else low
    high = style.most if style.most is not None else high
    return (low, high) if low < high else (low, low + 1.0)


def _line(frame: Frame, points: Points, style: FieldStyle, colour: str, step: float) -> Markup:
    runs = list(_runs(points, step * _JOINED))
    path = " ".join(
        "M"
        + " L".join(f"{number(frame.x(at))} {number(_y(frame, top))}" for at, _, top in run)
        # A single point is drawn as the round end of a line of length 0.
        + ("h0" if len(run) == 1 else "")
        for run in runs
    )
    parts = []
    if style.fill:
        parts += [
            element(
                "polygon",
                points=_area(frame, run),
                fill=colour,
                fill_opacity=style.fill / 100,
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
    """A finite coordinate also for infinite values; the rest is clipped."""
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


def _bounds(frame: Frame, style: FieldStyle) -> Markup:
    parts = [
        element(
            "line",
            x1=frame.left,
            y1=frame.y(step.bound),
            x2=frame.right,
            y2=frame.y(step.bound),
            stroke=css(step.colour),
        )
        for step in style.steps
        if step.bound is not None and frame.low <= step.bound <= frame.high
    ]
    return element("g", *parts, class_="bounds")
