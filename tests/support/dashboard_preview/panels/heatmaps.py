"""Heatmaps: a column for each step, a row for each bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dashboard_preview import grafana_units
from dashboard_preview.markup import Markup, element, together
from dashboard_preview.panels import chart_frame as framing
from dashboard_preview.value_colours import heat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard_preview.annotation_marks import Mark
    from dashboard_preview.data_frames import Series
    from dashboard_preview.grafana_json.dashboard_json import Panel
    from dashboard_preview.panel_data import Data
    from dashboard_preview.panels.chart_frame import Frame

_GUTTER: Final = 90.0
_SCALE: Final = 26.0
"""Pixels below, for the scale of colours."""
_BETWEEN: Final = 16.0


class Heat(NamedTuple):
    """The count of a bucket in the step that ends at `at`."""

    at: float
    row: int
    events: float


def heatmap(
    panel: Panel, data: Data, marks: Sequence[Mark], size: tuple[float, float], *, dark: bool
) -> Markup:
    """The counts of *data*, whose series are buckets up to their label `le`."""
    edges, cells = counts(data.series, panel.options["filterValues"]["le"])
    drawn = (size[0], size[1] - _SCALE)
    unit = panel.options["yAxis"]["unit"]
    labels = [
        "+Inf" if each == float("inf") else grafana_units.formatted(unit, each) for each in edges
    ]
    gutter = framing.gutter(labels, _GUTTER)
    frame = framing.framed(data.span, drawn, gutter, (0.0, float(len(edges))))
    low = min((each.events for each in cells), default=0.0)
    high = max((each.events for each in cells), default=0.0)
    every = max(1, round(_BETWEEN * len(edges) / (frame.bottom - frame.top) + 0.49))
    rows = [(frame.y(n + 1), label) for n, label in enumerate(labels) if n % every == every - 1]
    gap = panel.options["cellGap"]
    parts = [framing.times(frame), framing.names(frame, rows, gutter)]
    for each in cells:
        share = (each.events - low) / (high - low) if high > low else 1.0
        parts.append(_cell(frame, each, data.step, gap, heat(share, dark=dark)))
    parts.append(framing.marked(frame, marks))
    colours = _scale(low, high, dark=dark)
    return together((framing.svg(drawn, *parts, label=panel.title), colours))


def counts(every: Sequence[Series], filtered: float) -> tuple[list[float], list[Heat]]:
    """The upper bounds of the buckets, ascending, and the counts above *filtered*.

    Buckets are cumulative in Prometheus, so the one below is subtracted.
    """
    buckets = sorted(every, key=lambda each: float(each.labels["le"]))
    below: dict[float, float] = {}
    found = []
    for row, series in enumerate(buckets):
        for at, value in series.points:
            count = value - below.get(at, 0.0)
            below[at] = value
            if count > filtered:
                found.append(Heat(at, row, count))
    return [float(each.labels["le"]) for each in buckets], found


def _cell(frame: Frame, each: Heat, step: float, gap: float, colour: str) -> Markup:
    start = max(frame.x(each.at - step), frame.left)
    end = min(frame.x(each.at), frame.right)
    top, bottom = frame.y(each.row + 1), frame.y(each.row)
    inset = gap if end - start > 3 * gap else 0.0
    return element(
        "rect",
        x=start,
        y=top,
        width=max(end - start - inset, 0.0),
        height=max(bottom - top - gap, 0.5),
        fill=colour,
        data_events=each.events,
    )


def _scale(low: float, high: float, *, dark: bool) -> Markup:
    stops = ",".join(heat(n / 8, dark=dark) for n in range(9))
    return element(
        "div",
        element("span", grafana_units.formatted("short", low)),
        element("i", style=f"background:linear-gradient(90deg,{stops})"),
        element("span", grafana_units.formatted("short", high)),
        class_="heat",
    )
