"""Geometry of the error budget burn-down chart, in SVG units."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.reporting.percent_text import share, signed_share
from mm2slo_report.rendering.budget_steps import by_days, part_name, step_size

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import Day

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
    steps: str
    """`by day`, or the length of the parts."""
    summary: str


def burn_down(days: Sequence[Day], zone: tzinfo, *, whole_end: int) -> BurnDown | None:
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
    summary = f"{signed_share(levels[-1])} remaining."
    costly = max(days, key=lambda each: each.consumed or 0.0)
    if costly.consumed:
        name = part_name(costly.start, days, zone)
        part = "day" if by_days(days) else "step"
        summary += f" Costliest {part}: {name} ({used(costly.consumed)} of the budget)."
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
        columns=_columns(days, frame, zone),
        worst=_worst(days, levels, frame, zone),
        steps=step_size(days),
        summary=summary,
    )


def used(consumed: float | None) -> str:
    """Spent share of a budget: `644.8 %`, with more digits for tiny shares."""
    return share(consumed and (round(consumed, 3) or consumed))


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
    found, level = ([1.0] if (1.0 - low) * _LINE < HEIGHT - TOP - BOTTOM else []), 0.0
    while level < 1.0:
        found.append(level)
        level += step
    level = -step
    while level >= low:
        found.append(level)
        level -= step
    return found


def _columns(days: Sequence[Day], frame: _Frame, zone: tzinfo) -> tuple[Tick, ...]:
    every = max(1, -(-len(days) // _MAX_LABELS))
    return tuple(
        Tick(frame.x(each.start), part_name(each.start, days, zone)) for each in days[::every]
    )


def _worst(
    days: Sequence[Day], levels: Sequence[float], frame: _Frame, zone: tzinfo
) -> tuple[float, float, str, str] | None:
    number = max(range(len(days)), key=lambda each: days[each].consumed or 0.0)
    consumed = days[number].consumed or 0.0
    if consumed < _MIN_LABELED_SHARE:
        return None
    x, y = frame.x(days[number].end), frame.y((levels[number] + levels[number + 1]) / 2)
    text = f"{part_name(days[number].start, days, zone)}: {used(consumed)} spent"
    late = x > LEFT + (WIDTH - LEFT - RIGHT) * 0.6
    return (frame.x(days[number].start) - 8 if late else x + 8, y, text, "end" if late else "start")
