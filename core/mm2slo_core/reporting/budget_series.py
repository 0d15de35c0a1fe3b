"""Time series of counts and remaining budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.error_budget import Budget, Counts, burn_rate
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, SpanCounts, counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.reporting.step_counts import StepCounts

MAX_STEPS: Final = 2_000
_NICE_MINUTES: Final = (5, 15, 30, 60, 120, 360, 720, 1_440)
_WANTED: Final = 240
"""Maximum points of a chart."""


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
