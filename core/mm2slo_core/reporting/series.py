"""How an indicator went: counts by steps of time, and the budget after each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.budget import allowed_ratio, burn_rate
from mm2slo_core.objectives.evaluation import Counts
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, counted, whole_minute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.reporting.history import MinuteCounts, SpanCounts

MOST_STEPS: Final = 2_000
_NICE_MINUTES: Final = (1, 5, 15, 30, 60, 120, 360, 720, 1_440)
_WANTED: Final = 240
"""Points that a chart shows well."""


class Step(NamedTuple):
    """The part [start, end) of a series; figures are None without events."""

    start: int
    end: int
    counts: SpanCounts
    ratio: float | None
    burn_rate: float | None
    remaining: float | None
    """Of the budget that the whole series has, after this step; unclamped."""


def nice_step(span: Span, most: int = _WANTED) -> int:
    """A length in ms that divides *span* into no more than *most* steps: as a chart shows well."""
    for minutes in _NICE_MINUTES:
        if (span.end - span.start) / (minutes * MINUTE_MS) <= most:
            return minutes * MINUTE_MS
    days = -(-(span.end - span.start) // (most * 1_440 * MINUTE_MS))
    return days * 1_440 * MINUTE_MS


def steps(span: Span, length: int) -> tuple[Span, ...]:
    """*span* in parts of *length* ms, the last one as far as it lies in it.

    Raises ValueError for a length that is no whole minute, and for more than `MOST_STEPS`.
    """
    if length < MINUTE_MS or whole_minute(length) != length:
        raise ValueError("a step is a whole number of minutes")
    count = -(-(span.end - span.start) // length)
    if count > MOST_STEPS:
        raise ValueError(f"{count:,} steps are more than {MOST_STEPS:,}")
    return tuple(
        Span(start, min(start + length, span.end)) for start in range(span.start, span.end, length)
    )


def series(
    minutes: Iterable[MinuteCounts], parts: tuple[Span, ...], target: float
) -> tuple[Step, ...]:
    """What *minutes* say of each of *parts*, which are in order and touch each other."""
    ordered = sorted(minutes)
    counts = {part: counted(ordered, part) for part in parts}
    allowed = allowed_ratio(target) * sum(each.total for each in counts.values())
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
