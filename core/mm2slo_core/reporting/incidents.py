"""Incidents, and the budget spent by day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.reporting.report_entry import Day, Entry, Incident
from mm2slo_core.reporting.step_counts import STEP_MS
from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.report_entry import BudgetReading
    from mm2slo_core.reporting.slo_report import Detail
    from mm2slo_core.reporting.step_counts import SpanCounts, StepCounts

_GAP_MS: Final = STEP_MS
"""Maximum gap between bad steps of one incident."""

MIN_BAD: Final = 3.0
"""Bad events of an incident."""
MIN_SPENT: Final = 0.005
"""Share of the budget that an incident spends."""
MAX_COSTS: Final = 20


class Cost(NamedTuple):
    """An incident of an objective."""

    entry: Entry
    incident: Incident


def incidents(steps: Iterable[StepCounts], budget: BudgetReading, sli: Sli) -> tuple[Incident, ...]:
    """Runs of bad *steps* (ascending) with gaps of up to a step, the costliest first.

    A run below `MIN_BAD` events or `MIN_SPENT` of *budget* is no incident, except of completeness,
    where each bad event is a lost record. An incident ends with its last bad step.
    """
    runs: list[list[float]] = []
    for each in steps:
        bad = each.total - each.good
        if bad <= 0:
            continue
        if runs and each.at - runs[-1][1] <= _GAP_MS:
            runs[-1][1:] = each.end, runs[-1][2] + bad
        else:
            runs.append([each.at, each.end, bad])
    found = (_incident(round(start), round(end), bad, budget) for start, end, bad in runs)
    counted = [each for each in found if _is_incident(each.bad, each.consumed, sli)]
    return tuple(sorted(counted, key=lambda each: (-each.bad, each.start)))


def may_have_incident(entry: Entry) -> bool:
    """Whether the bad events of *entry* suffice for an incident."""
    return _is_incident(entry.counts.bad, entry.budget.consumed or 0.0, entry.objective.key.sli)


def costliest(details: Iterable[Detail]) -> tuple[Cost, ...]:
    """The costliest incidents of *details*, by share of their budget."""
    found = (Cost(detail.entry, each) for detail in details for each in detail.incidents)
    ordered = sorted(found, key=lambda each: (-each.incident.consumed, each.incident.start))
    return tuple(ordered[:MAX_COSTS])


def by_day(
    days: Sequence[Span], counts: Mapping[Span, SpanCounts], allowed: float
) -> tuple[Day, ...]:
    """The budget spent by each of *days*."""
    return tuple(
        Day(day.start, day.end, counts[day].bad, counts[day].bad / allowed if allowed > 0 else None)
        for day in days
    )


def _is_incident(bad: float, consumed: float, sli: Sli) -> bool:
    if sli is Sli.COMPLETENESS:
        return bad > 0
    return bad >= MIN_BAD and consumed >= MIN_SPENT


def _incident(start: int, end: int, bad: float, budget: BudgetReading) -> Incident:
    # Without any budget, one bad event spends all of it.
    consumed = bad / budget.total_events if budget.total_events > 0 else 1.0
    return Incident(
        start=start,
        end=end,
        bad=bad,
        consumed=consumed,
        equivalent_minutes=consumed * budget.total_minutes,
    )
