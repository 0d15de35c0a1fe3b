"""The parts of a window for a budget chart: days, or shorter steps for a short history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.budget_series import chart_step, steps
from mm2slo_core.reporting.report_periods import days
from mm2slo_core.reporting.step_counts import whole_minute

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import ReportWindow
    from mm2slo_core.reporting.step_counts import StepCounts

_DAYS_FROM: Final = 2 * 86_400_000
"""Minimum length in ms for days."""
_MAX_STEPS: Final = 48


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
    return steps(observed, chart_step(observed, _MAX_STEPS))
