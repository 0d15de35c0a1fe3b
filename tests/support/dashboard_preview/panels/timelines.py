"""State timelines: a bar for each series, a piece for each state."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dashboard_preview.data_frames import Series
from dashboard_preview.grafana_json import FieldStyle, FieldStyles, Panel
from dashboard_preview.markup import Markup, element, together, width
from dashboard_preview.panel_data import Data, Mark
from dashboard_preview.panels import chart_frame as framing
from dashboard_preview.panels.chart_frame import Entry, Frame, height, legend
from dashboard_preview.value_colours import on, shown

_NAMES: Final = 0.3
"""Maximum share of the width for names."""
_GAP: Final = 1.5


class Piece(NamedTuple):
    """A state from `start` to `end`, in epoch seconds."""

    start: float
    end: float
    value: float


def timeline(
    panel: Panel, styles: FieldStyles, data: Data, marks: Sequence[Mark], size: tuple[float, float]
) -> Markup:
    """The states of *data*; the legend names those that occur."""
    entries = _entries(styles.defaults, data)
    below = height(entries, size) if panel.options["legend"]["showLegend"] else 0.0
    drawn = (size[0], size[1] - below)
    names = [each.name for each in data.series]
    gutter = framing.gutter(names, size[0] * _NAMES)
    frame = framing.framed(data.span, drawn, gutter, (0.0, float(len(names))))
    share = (frame.bottom - frame.top) / len(names)
    thick = share * panel.options["rowHeight"]
    rows = []
    parts = [framing.times(frame)]
    for n, series in enumerate(data.series):
        middle = frame.top + share * (n + 0.5)
        rows.append((middle, series.name))
        parts += [
            _bar(frame, piece, styles.of(series.name), middle, thick)
            for piece in pieces(series, data.step, data.span.end)
        ]
    parts += [framing.names(frame, rows, gutter), framing.marked(frame, marks)]
    return together(
        (framing.svg(drawn, *parts, label=panel.title), legend(entries, below) if below else "")
    )


def pieces(series: Series, step: float, until: float) -> Iterator[Piece]:
    """Consecutive equal values become one piece; a missing point ends it."""
    piece: Piece | None = None
    for at, value in series.points:
        if piece is not None and (value != piece.value or at - piece.end > step * (_GAP - 1)):
            yield piece
            piece = None
        start = at if piece is None else piece.start
        piece = Piece(start, min(at + step, until), value)
    if piece is not None:
        yield piece


def _bar(frame: Frame, piece: Piece, style: FieldStyle, middle: float, thick: float) -> Markup:
    figure = shown(style, piece.value)
    start, end = frame.x(max(piece.start, frame.span.start)), frame.x(piece.end)
    parts = [
        element(
            "rect",
            element("title", figure.text),
            x=start,
            y=middle - thick / 2,
            width=max(end - start, 0.0),
            height=thick,
            fill=figure.colour,
            fill_opacity=style.fill / 100,
        )
    ]
    if width(figure.text) + 12 < end - start and thick > 14:
        ink = on(figure.colour) if style.fill > 80 else "var(--bright)"
        parts.append(element("text", figure.text, x=start + 6, y=middle + 4, style=f"fill:{ink}"))
    return element("g", *parts)


def _entries(style: FieldStyle, data: Data) -> list[Entry]:
    """The states that occur, in the order of their codes."""
    values = sorted({value for series in data.series for _, value in series.points})
    found = (shown(style, value) for value in values)
    return [Entry(each.text, each.colour, square=True) for each in dict.fromkeys(found)]
