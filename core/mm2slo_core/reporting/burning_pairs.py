"""The time since which a window pair has burned without interruption."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from mm2slo_core.objectives.error_budget import Counts, burn_rate
from mm2slo_core.reporting.step_counts import MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.report_entry import PairReading
    from mm2slo_core.reporting.step_counts import StepCounts


def burning_since(
    pair: PairReading, target: float, steps: Iterable[StepCounts], span: Span
) -> int | None:
    """The first instant (epoch ms) from which both windows exceeded in every minute of *span*.

    *steps* are those of *span* with a sample. None if the pair burned in every minute whose long
    window is within *span*, so that the start is earlier.
    """
    whole = (span.end - span.start) // MINUTE_MS
    bad, total, measured = ([0.0] * (whole + 1) for _ in range(3))
    for each in steps:
        place = -(-(each.end - span.start) // MINUTE_MS)
        bad[place], total[place], measured[place] = each.total - each.good, each.total, each.minutes
    bad, total, measured = (list(accumulate(each)) for each in (bad, total, measured))
    long, short = (
        round(seconds * 1000) // MINUTE_MS for seconds in (pair.long_seconds, pair.short_seconds)
    )

    def exceeds(length: int, end: int) -> bool:
        start = end - length
        counts = Counts(bad[end] - bad[start], total[end] - total[start])
        share = (measured[end] - measured[start]) / length if length == long else 1.0
        return (burn_rate(counts, target) or 0.0) * share > pair.factor

    for end in range(whole, long - 1, -1):
        if not (exceeds(short, end) and exceeds(long, end)):
            # At the end itself it is known to burn, by counts that may be finer.
            return span.start + min(end + 1, whole) * MINUTE_MS
    return None
