"""Increments of five minutes, the sums of them, and how much of an hour is known.

Increments do not overlap and are recorded once, so that a window of days is a sum of few samples,
and maintenance stays left out for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.model import RecordingRule
from mm2slo_alerts.recording.maintenance import touched, untouched
from mm2slo_alerts.recording.short import bad_of, pooled
from mm2slo_alerts.recording.timing import STEP, samples_within, seconds
from mm2slo_alerts.recording.verdict import verdict
from mm2slo_core.catalogue import (
    BAD_STEP,
    BAD_SUM,
    CHAIN_WINDOWS,
    COVERAGE,
    DUE_STEP,
    EVENTS_STEP,
    EVENTS_SUM,
    EXCLUDED_STEP,
    OBJECTIVE,
    SLI_EVENTS_TOTAL,
    SLI_LABELS,
    SLI_UNKNOWN_EVENTS_TOTAL,
    UNKNOWN_STEP,
)
from mm2slo_core.promql import aggregate, over, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_alerts.model import Scale
    from mm2slo_core.catalogue import RecordedSeries

_HOUR: Final = "1h"


def steps(scale: Scale) -> Iterator[RecordingRule]:
    """The increments, without maintenance; what it takes out is counted apart."""
    events, free = pooled(SLI_EVENTS_TOTAL, STEP, scale), untouched(STEP, scale)
    unknown = pooled(SLI_UNKNOWN_EVENTS_TOTAL, STEP, scale)
    yield RecordingRule(record=EVENTS_STEP.name, expr=f"{events}\n{free}")
    yield RecordingRule(record=BAD_STEP.name, expr=bad_of(EVENTS_STEP, STEP, scale))
    yield RecordingRule(record=UNKNOWN_STEP.name, expr=f"{unknown}\n{free}")
    yield RecordingRule(record=EXCLUDED_STEP.name, expr=f"{events}\n{touched(STEP, scale)}")
    yield RecordingRule(record=DUE_STEP.name, expr=_due(scale))


def chains(scale: Scale) -> Iterator[RecordingRule]:
    """Sums, error ratio and burn rate of each window of hours and days."""
    for window in CHAIN_WINDOWS:
        length = seconds(window)
        events, bad = EVENTS_SUM[window], BAD_SUM[window]
        yield RecordingRule(record=events.name, expr=step_sum(EVENTS_STEP, length, scale))
        yield RecordingRule(record=bad.name, expr=step_sum(BAD_STEP, length, scale))
        yield from verdict(window, events, bad)


def step_sum(series: RecordedSeries, length: float, scale: Scale) -> str:
    """The sum of the steps of the last *length* seconds."""
    return str(over("sum_over_time", series, samples_within(length, STEP, scale)))


def step_count(series: RecordedSeries, length: float, scale: Scale) -> str:
    """How many steps of the last *length* seconds were recorded."""
    return str(over("count_over_time", series, samples_within(length, STEP, scale)))


def hour_coverage(scale: Scale) -> RecordingRule:
    """How much of the last hour is known; 0 when nothing was scraped that should have been."""
    length = seconds(_HOUR)
    events = step_sum(EVENTS_STEP, length, scale)
    unknown = step_sum(UNKNOWN_STEP, length, scale)
    scraped = step_count(EVENTS_STEP, length, scale)
    due = step_count(DUE_STEP, length, scale)
    return RecordingRule(
        record=COVERAGE[_HOUR].name,
        expr=f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({scraped} / {due}, 1)\nor\n0 * ({due} unless {scraped})",
    )


def _due(scale: Scale) -> str:
    """An indicator is due a step's length after it has got an objective, not sooner.

    Thus coverage speaks of the time since the indicator exists: a new flow is not missing the
    hour before it, and a flow that vanished is missing for as long as its objective outlives it.
    """
    now = aggregate("max", select(OBJECTIVE), SLI_LABELS)
    before = aggregate("max", select(OBJECTIVE, offset=scale(STEP)), SLI_LABELS)
    return f"0 * ({now} and {before}) + 1\n{untouched(STEP, scale)}"
