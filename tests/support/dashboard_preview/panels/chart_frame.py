"""Axes, grid and annotations of charts over time, and the geometry of their inner area."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from dashboard_preview import grafana_units
from dashboard_preview.markup import Markup, element, number, shortened, width
from dashboard_preview.panel_data import Mark
from dashboard_preview.time_range import Span

BOTTOM: Final = 22.0
"""Pixels below the area, for the time axis."""
_TOP: Final = 6.0
_RIGHT: Final = 12.0
_GAP: Final = 8.0
_BETWEEN: Final = 24.0
"""Minimum pixels between times on the axis."""
_SECONDS: Final = "00:00:00"
_DAYS: Final = "00/00 00:00"
_DAY: Final = 86_400.0
_FLAG: Final = 4.0


class Tick(NamedTuple):
    """A position on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The inner area of a chart in pixels, and the values of its edges."""

    span: Span
    left: float
    right: float
    top: float
    bottom: float
    low: float
    high: float

    def x(self, at: float) -> float:
        """Of a time in epoch seconds."""
        return self.left + (self.right - self.left) * (at - self.span.start) / self.span.length

    def y(self, value: float) -> float:
        """Of a value."""
        return self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)


def framed(
    span: Span, size: tuple[float, float], gutter: float, bounds: tuple[float, float]
) -> Frame:
    """The area of a chart of *size* whose labels at the left are *gutter* pixels wide."""
    wide, high = size
    return Frame(span, gutter + _GAP, wide - _RIGHT, _TOP, high - BOTTOM, *bounds)


def gutter(labels: Sequence[str], most: float) -> float:
    """Room for *labels* at the left, up to *most* pixels."""
    return min(max((width(each) for each in labels), default=0.0), most)


def times(frame: Frame) -> Markup:
    """The axis of time, with its grid."""
    widest = width(_DAYS if frame.span.length > _DAY else _SECONDS)
    most = int((frame.right - frame.left) / (widest + _BETWEEN))
    parts = []
    for at, text in moments(frame.span.start, frame.span.end, max(most, 1)):
        x = frame.x(at)
        parts.append(_line(x, frame.top, x, frame.bottom))
        half = width(text) / 2
        # The outermost ones stay within the panel.
        middle = min(max(x, half), frame.right + _RIGHT - half)
        parts.append(_text(middle, frame.bottom + 15, text, "middle"))
    return element("g", *parts, class_="axis times")


def levels(frame: Frame, rows: Sequence[Tick]) -> Markup:
    """The axis of values, with its grid."""
    parts = []
    for at, text in rows:
        y = frame.y(at)
        parts.append(_line(frame.left, y, frame.right, y))
        parts.append(_text(frame.left - _GAP, y + 4, text, "end"))
    return element("g", *parts, class_="axis levels")


def names(frame: Frame, rows: Sequence[tuple[float, str]], room: float) -> Markup:
    """Names beside rows, at these heights, cut to *room* pixels."""
    parts = [
        element(
            "text",
            element("title", name),
            shortened(name, room),
            x=frame.left - _GAP,
            y=y + 4,
            text_anchor="end",
        )
        for y, name in rows
    ]
    return element("g", *parts, class_="axis names")


def marked(frame: Frame, marks: Sequence[Mark]) -> Markup:
    """Annotations as Grafana draws them: a dashed line with a flag below, shaded regions."""
    parts = []
    for each in marks:
        if each.end < frame.span.start or each.start > frame.span.end:
            continue
        start = frame.x(max(each.start, frame.span.start))
        end = frame.x(min(each.end, frame.span.end))
        inner = [element("title", each.text)]
        if end - start > 1:
            inner.append(
                element(
                    "rect",
                    x=start,
                    y=frame.top,
                    width=end - start,
                    height=frame.bottom - frame.top,
                    fill=each.colour,
                    class_="shade",
                )
            )
            inner.append(_edge(start, end, frame.bottom, each.colour))
        else:
            inner.append(_flag(start, frame.bottom, each.colour))
        inner += [_upright(frame, x, each.colour) for x in dict.fromkeys((start, end))]
        parts.append(element("g", *inner))
    return element("g", *parts, class_="marks")


def clipped(frame: Frame, *parts: str) -> Markup:
    """*parts*, clipped to the area."""
    # A line on an edge keeps its full width.
    wide, high = frame.right - frame.left + 2, frame.bottom - frame.top + 4
    return element(
        "svg",
        *parts,
        x=frame.left - 1,
        y=frame.top - 2,
        width=wide,
        height=high,
        viewBox=" ".join(map(number, (frame.left - 1, frame.top - 2, wide, high))),
        class_="clipped",
    )


def svg(size: tuple[float, float], *parts: str, label: str) -> Markup:
    """A drawing of *size* pixels; *label* is for screen readers."""
    wide, high = size
    return element(
        "svg",
        *parts,
        width=wide,
        height=high,
        viewBox=f"0 0 {number(wide)} {number(high)}",
        role="img",
        aria_label=label,
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor)


def _flag(x: float, y: float, colour: str) -> Markup:
    corners = ((x - _FLAG, y + _FLAG), (x + _FLAG, y + _FLAG), (x, y))
    points = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
    return element("polygon", points=points, fill=colour)


def _edge(start: float, end: float, y: float, colour: str) -> Markup:
    return element("rect", x=start, y=y, width=end - start, height=_FLAG, fill=colour)


def _upright(frame: Frame, x: float, colour: str) -> Markup:
    return element("line", x1=x, y1=frame.top, x2=x, y2=frame.bottom, stroke=colour, class_="mark")


_LEGEND_LINE: Final = 20.0
_AROUND: Final = 38.0
"""Pixels: the swatch and the spaces around an entry."""
_SHARE: Final = 0.38
"""Maximum share of the panel's height; more entries need scrolling."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A series or a state; `figure` is its latest value, if the legend shows it."""

    name: str
    colour: str
    figure: str = ""
    square: bool = False

    @property
    def text(self) -> str:
        """Its full text."""
        return f"{self.name} Last *: {self.figure}" if self.figure else self.name


def height(entries: Sequence[Entry], room: tuple[float, float]) -> float:
    """Pixels that *entries* take in a panel of the size *room*, in whole lines."""
    if not entries:
        return 0.0
    lines, used = 1, 0.0
    for each in entries:
        wide = min(width(each.text) + _AROUND, room[0])
        if used and used + wide > room[0]:
            lines, used = lines + 1, 0.0
        used += wide
    return min(lines * _LEGEND_LINE, max(room[1] * _SHARE // _LEGEND_LINE, 1) * _LEGEND_LINE)


def legend(entries: Sequence[Entry], high: float) -> Markup:
    """*entries* in a box of *high* pixels."""
    items = (
        element(
            "li",
            element(
                "i", class_="square" if each.square else None, style=f"background:{each.colour}"
            ),
            element("span", each.name),
            *([element("em", f"Last *: {each.figure}")] if each.figure else []),
            title=each.text,
        )
        for each in entries
    )
    return element("ul", *items, class_="legend", style=f"height:{high:.0f}px")


_CLOCK: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600),
    *(43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000),
)
"""Usual seconds between ticks of a time axis."""
_MINUTE: Final = 60


def numbers(low: float, high: float, most: int, unit: str) -> tuple[Tick, ...]:
    """Round numbers from *low* to *high*, at most about *most*, in *unit*."""
    step = _step((high - low) / max(most, 1), unit)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = (number * step for number in range(first, last + 1))
    return tuple(Tick(each, grafana_units.on_axis(unit, each, step)) for each in places)


def moments(start: float, end: float, most: int) -> tuple[Tick, ...]:
    """Round times (epoch seconds) from *start* to *end*, at most about *most*, in UTC."""
    step = _first(_CLOCK, (end - start) / max(most, 1))
    pattern = "%H:%M:%S" if step < _MINUTE else "%H:%M"
    if step >= _DAY:
        pattern = "%m/%d"
    elif end - start > _DAY:
        pattern = "%m/%d %H:%M"
    found, at = [], math.ceil(start / step) * step
    while at <= end:
        found.append(Tick(at, datetime.fromtimestamp(at, UTC).strftime(pattern)))
        at += step
    return tuple(found)


def _step(least: float, unit: str) -> float:
    if unit == grafana_units.SECONDS and least > 1:
        return _first(_CLOCK, least)
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * factor for factor in (1, 2, 5, 10, 20) if size * factor >= least * 0.999)


def _first(steps: Sequence[int], least: float) -> float:
    return float(next((each for each in steps if each >= least * 0.999), steps[-1]))
