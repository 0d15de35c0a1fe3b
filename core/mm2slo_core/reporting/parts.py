"""The parts of a window by which its budget is told: days, or less while little is known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import whole_minute
from mm2slo_core.reporting.periods import days
from mm2slo_core.reporting.series import nice_step, steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.entry import ReportWindow
    from mm2slo_core.reporting.history import MinuteCounts

_DAYS_FROM: Final = 2 * 86_400_000
"""In ms: of less than two days, days would be one step or two."""
_MOST_STEPS: Final = 48


def budget_parts(
    window: ReportWindow,
    zone: tzinfo,
    known_since: int | None,
    minutes: Sequence[MinuteCounts],
) -> tuple[Span, ...]:
    """The parts of *window*, in order and without gaps: days in *zone*, or even steps.

    They start with what is known: at *known_since* (epoch ms), or at the first of *minutes*
    (ascending) where a source dates that later; a history older than the window, with the window.
    Of less than two days to come and gone there are steps, of up to 48 and a minute at least.
    """
    first = [each.at for each in minutes[:1]]
    start = window.start
    if known_since is not None and window.start < known_since < window.end:
        start = whole_minute(min([known_since, *first]))
    known = replace(window, start=max(start, window.start))
    end = max(window.end, window.start + round(window.seconds * 1000))
    if end - known.start >= _DAYS_FROM:
        return days(known, zone)
    lived = Span(known.start, window.end)
    return steps(lived, nice_step(lived, _MOST_STEPS))
