"""Incidents, and the budget spent by day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_core.reporting.report_entry import Incident

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.minute_counts import MinuteCounts, SpanCounts

_GAP_MS: Final = 5 * MINUTE_MS
"""Maximum gap between bad minutes of one incident."""


class Day(NamedTuple):
    """The budget spent by the part [start, end) of a window, usually a day."""

    start: int
    end: int
    bad: float
    consumed: float | None
    """Share of the window's budget; None without events."""


def incidents(minutes: Iterable[MinuteCounts], allowed: float) -> tuple[Incident, ...]:
    """Runs of bad *minutes* (ascending) with gaps of up to 5 minutes, the costliest first.

    *allowed* is the number of bad events in the budget of the window. An incident ends with its
    last bad minute, or hour in hourly history.
    """
    found: list[Incident] = []
    for each in minutes:
        bad = each.total - each.good
        if bad <= 0:
            continue
        end = each.at + each.length
        last = found[-1] if found else None
        if last is not None and each.at - last.end <= _GAP_MS:
            found[-1] = _incident(last.start, end, last.bad + bad, allowed)
        else:
            found.append(_incident(each.at, end, bad, allowed))
    return tuple(sorted(found, key=lambda each: (-each.bad, each.start)))


def by_day(
    days: Sequence[Span], counts: Mapping[Span, SpanCounts], allowed: float
) -> tuple[Day, ...]:
    """The budget spent by each of *days*."""
    return tuple(
        Day(day.start, day.end, counts[day].bad, counts[day].bad / allowed if allowed > 0 else None)
        for day in days
    )


def _incident(start: int, end: int, bad: float, allowed: float) -> Incident:
    # Without any budget, one bad event spends all of it.
    return Incident(start=start, end=end, bad=bad, consumed=bad / allowed if allowed > 0 else 1.0)
