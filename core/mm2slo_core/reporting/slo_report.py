"""Results of the report service: reports, details, time series and incidents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final, NamedTuple

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.error_budget import Budget, Counts, burn_rate
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import Objective
from mm2slo_core.reporting.report_entry import (
    BudgetPart,
    BudgetReading,
    Entry,
    Incident,
    ReportWindow,
)
from mm2slo_core.reporting.report_query import day_spans
from mm2slo_core.reporting.step_counts import (
    MINUTE_MS,
    STEP_MS,
    SpanCounts,
    StepCounts,
    count_span,
    whole_minute,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Entries, the worst first.

    `window` is None if each entry has the window of its objective. `source` is the source of
    history. `zone` is the IANA time zone of days and months.
    """

    as_of: int
    source: str
    zone: str
    window: ReportWindow | None
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDetail:
    """The largest costs of the budget of one entry."""

    entry: Entry
    days: tuple[BudgetPart, ...]
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorHistory:
    """The history of an indicator over [start, end), in steps of `length` ms, as of `as_of`."""

    objective: Objective
    as_of: int
    start: int
    end: int
    length: int
    steps: tuple[Step, ...]


MAX_STEPS: Final = 2_000
_NICE_MINUTES: Final = (5, 15, 30, 60, 120, 360, 720, 1_440)

_WANTED: Final = 240
"""Maximum points of a chart."""

_DAYS_FROM: Final = 2 * 86_400_000
"""Minimum length in ms for days."""
_MAX_PARTS: Final = 48


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


def step_spans(span: Span, length: int) -> tuple[Span, ...]:
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


def budget_steps(
    history: Iterable[StepCounts], parts: tuple[Span, ...], target: float, window: float
) -> tuple[Step, ...]:
    """The steps of *history* for *parts*, which are in order and without gaps.

    *window*: seconds of all parts without planned maintenance.
    """
    ordered = sorted(history)
    counts = {part: count_span(ordered, part) for part in parts}
    whole = sum(counts.values(), SpanCounts())
    allowed = Budget(
        target=target,
        window=window,
        measured=60.0 * whole.minutes,
        counts=Counts(whole.bad, whole.total),
    ).total_events
    steps, spent = [], 0.0
    for span, within in counts.items():
        spent += within.bad
        steps.append(
            Step(
                start=span.start,
                end=span.end,
                counts=within,
                ratio=within.good / within.total if within.total > 0 else None,
                burn_rate=burn_rate(Counts(within.bad, within.total), target),
                remaining=1.0 - spent / allowed if allowed > 0 else None,
            )
        )
    return tuple(steps)


def are_days(start: int, whole_end: int) -> bool:
    """Whether `budget_parts` from *start* on are days, in a period until *whole_end* (epoch ms)."""
    return whole_end - start >= _DAYS_FROM


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
    if are_days(known.start, window.whole.end):
        return day_spans(known, zone)
    observed = Span(known.start, window.end)
    return step_spans(observed, chart_step(observed, _MAX_PARTS))


_GAP_MS: Final = STEP_MS
"""Maximum gap between bad steps of one incident."""

MIN_BAD: Final = 3.0
"""Bad events of an incident."""

MIN_SPENT: Final = 0.005
"""Share of the budget that an incident spends."""
MAX_COSTS: Final = 20


class Cost(NamedTuple):
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
    candidates = (_incident(round(start), round(end), bad, budget) for start, end, bad in runs)
    counted = [each for each in candidates if _is_incident(each.bad, each.consumed, sli)]
    return tuple(sorted(counted, key=lambda each: (-each.bad, each.start)))


def may_have_incident(entry: Entry) -> bool:
    """Whether the bad events of *entry* suffice for an incident."""
    return _is_incident(entry.counts.bad, entry.budget.consumed or 0.0, entry.objective.key.sli)


def costliest(details: Iterable[EntryDetail]) -> tuple[Cost, ...]:
    """The costliest incidents of *details*, by share of their budget."""
    costs = (Cost(detail.entry, each) for detail in details for each in detail.incidents)
    ordered = sorted(costs, key=lambda each: (-each.incident.consumed, each.incident.start))
    return tuple(ordered[:MAX_COSTS])


def by_day(
    days: Sequence[Span], counts: Mapping[Span, SpanCounts], allowed: float
) -> tuple[BudgetPart, ...]:
    """The bad events of each of *days*, also as shares of *allowed* ones."""
    return tuple(
        BudgetPart(
            day.start, day.end, counts[day].bad, counts[day].bad / allowed if allowed > 0 else None
        )
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
