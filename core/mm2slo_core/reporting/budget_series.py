"""Time series of counts and remaining budget, and the parts of a window that charts show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.error_budget import Budget, Counts, burn_rate
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.report_periods import days
from mm2slo_core.reporting.step_counts import (
    MINUTE_MS,
    STEP_MS,
    SpanCounts,
    counted,
    whole_minute,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import ReportWindow
    from mm2slo_core.reporting.step_counts import StepCounts

MAX_STEPS: Final = 2_000
_NICE_MINUTES: Final = (5, 15, 30, 60, 120, 360, 720, 1_440)
_WANTED: Final = 240
"""Maximum points of a chart."""
_DAYS_FROM: Final = 2 * 86_400_000
"""Minimum length in ms for days."""
_MAX_PARTS: Final = 48


class Step(NamedTuple):
    """The part [start, end) of a series; ratios are None without events."""

    start: int
    end: int
    counts: SpanCounts
    ratio: float | None
    burn_rate: float | None
    remaining: float | None
    """Share of the budget of the whole series after this step, unclamped."""


def chart_step(span: Span, most: int = _WANTED) -> int:
    """A step length in ms that divides *span* into at most *most* steps."""
    for minutes in _NICE_MINUTES:
        if (span.end - span.start) / (minutes * MINUTE_MS) <= most:
            return minutes * MINUTE_MS
    days = -(-(span.end - span.start) // (most * 1_440 * MINUTE_MS))
    return days * 1_440 * MINUTE_MS


def steps(span: Span, length: int) -> tuple[Span, ...]:
    """*span* in parts of *length* ms; the last one may be shorter.

    Raises ValueError unless *length* is a multiple of five minutes, and for more than `MAX_STEPS`.
    """
    if length < STEP_MS or length % STEP_MS:
        raise ValueError(f"step is {length} ms; expected a multiple of five minutes")
    count = -(-(span.end - span.start) // length)
    if count > MAX_STEPS:
        raise ValueError(f"{count:,} steps; expected at most {MAX_STEPS:,}")
    return tuple(
        Span(start, min(start + length, span.end)) for start in range(span.start, span.end, length)
    )


def series(
    history: Iterable[StepCounts], parts: tuple[Span, ...], target: float, window: float
) -> tuple[Step, ...]:
    """The steps of *history* for *parts*, which are in order and without gaps.

    *window*: seconds of all parts without planned maintenance.
    """
    ordered = sorted(history)
    counts = {part: counted(ordered, part) for part in parts}
    whole = sum(counts.values(), SpanCounts())
    allowed = Budget(
        target=target,
        window=window,
        measured=60.0 * whole.minutes,
        counts=Counts(whole.bad, whole.total),
    ).total_events
    found, spent = [], 0.0
    for span, within in counts.items():
        spent += within.bad
        found.append(
            Step(
                start=span.start,
                end=span.end,
                counts=within,
                ratio=within.good / within.total if within.total > 0 else None,
                burn_rate=burn_rate(Counts(within.bad, within.total), target),
                remaining=1.0 - spent / allowed if allowed > 0 else None,
            )
        )
    return tuple(found)


def budget_parts(
    window: ReportWindow,
    zone: tzinfo,
    known_since: int | None,
    history: Sequence[StepCounts],
) -> tuple[Span, ...]:
    """The parts of *window*, in order and without gaps: days in *zone*, or even steps.

    They start with the history: at *known_since* (epoch ms) or at the first of *history*
    (ascending), whichever is earlier, but not before the window. Below two days until the end of
    the period, they are up to 48 steps of at least five minutes.
    """
    first = [each.at for each in history[:1]]
    start = window.start
    if known_since is not None and window.start < known_since < window.end:
        start = whole_minute(min([known_since, *first]))
    known = replace(window, start=max(start, window.start))
    end = max(window.end, window.start + round(window.seconds * 1000))
    if end - known.start >= _DAYS_FROM:
        return days(known, zone)
    observed = Span(known.start, window.end)
    return steps(observed, chart_step(observed, _MAX_PARTS))
