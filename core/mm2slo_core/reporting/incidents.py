"""What cost most: runs of bad minutes, and what each day spent of a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.reporting.entry import Incident
from mm2slo_core.reporting.history import MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.history import MinuteCounts, SpanCounts

_GAP_MS: Final = 5 * MINUTE_MS
"""Of good minutes, within one incident."""


class Day(NamedTuple):
    """What the part [start, end) of a window, as a rule a day, spent of its budget."""

    start: int
    end: int
    bad: float
    consumed: float | None
    """Share of the window's budget; None while it holds no event."""


def incidents(minutes: Iterable[MinuteCounts], allowed: float) -> tuple[Incident, ...]:
    """Runs of bad *minutes* (ascending) with gaps of up to 5 minutes, the costliest first.

    *allowed* are the bad events that the budget of the window allows. An incident ends with its
    last bad minute; of what is kept by the hour, with its last bad hour.
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
    """What each of *days* spent, in their order."""
    return tuple(
        Day(day.start, day.end, counts[day].bad, counts[day].bad / allowed if allowed > 0 else None)
        for day in days
    )


def _incident(start: int, end: int, bad: float, allowed: float) -> Incident:
    # Without a budget that allows anything, any bad event is all of it.
    return Incident(start=start, end=end, bad=bad, consumed=bad / allowed if allowed > 0 else 1.0)
