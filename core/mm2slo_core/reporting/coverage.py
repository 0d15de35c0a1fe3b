"""How much of a span is known: of its minutes, and of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.question import inside, minutes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.reporting.history import SpanCounts


def expected_minutes(whole: Span, excluded: Sequence[Span], known_since: int | None) -> int:
    """The minutes of *whole* that should hold a sample.

    Not those of planned maintenance, nor those before the first datum: an objective that is
    younger than its window misses nothing. Before there was any datum, all of them.
    """
    start = whole.start if known_since is None else max(whole.start, known_since)
    if start >= whole.end:
        start = whole.start
    lived = Span(start, whole.end)
    return minutes_of([lived]) - minutes_of(inside(excluded, lived))


def coverage(counts: SpanCounts, expected: int) -> float | None:
    """The share of the *expected* minutes with a sample, times that of the events that are known.

    None where nothing was expected: all of it was planned maintenance.
    """
    if expected <= 0:
        return None
    seen = min(counts.minutes / expected, 1.0)
    events = counts.total + counts.unknown
    return seen * (counts.total / events) if events > 0 else seen
