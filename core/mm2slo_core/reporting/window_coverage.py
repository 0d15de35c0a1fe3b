"""Coverage of a span: the known share of its minutes and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.report_query import clip, count_minutes
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.reporting.step_counts import SpanCounts


def expected_minutes(whole: Span, excluded: Sequence[Span], known_since: int | None) -> int:
    """The minutes of *whole* that steps should have measured: those of whole steps.

    Without planned maintenance and without the time before the first step; if *whole* ends before
    it, all.
    """
    start = whole.start if known_since is None else max(whole.start, known_since)
    if start >= whole.end:
        start = whole.start
    observed = Span(start, whole.end)
    minutes = count_minutes([observed]) - count_minutes(clip(excluded, observed))
    return minutes - minutes % (STEP_MS // MINUTE_MS)


def coverage(counts: SpanCounts, expected: int) -> float | None:
    """The share of *expected* minutes with a sample, times the known share of events.

    None if no minutes were expected, because of planned maintenance.
    """
    if expected <= 0:
        return None
    seen = min(counts.minutes / expected, 1.0)
    events = counts.total + counts.unknown
    return seen * (counts.total / events) if events > 0 else seen
