"""Steps (increases over five minutes), their sums, and the coverage of an hour.

Steps do not overlap: a window of days is a sum of few samples, and excluded maintenance stays
excluded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.recording.error_ratio import error_ratio_rules
from mm2slo_alerts.recording.maintenance_filter import touched, untouched
from mm2slo_alerts.recording.measured_share import measured_steps, share_of_steps
from mm2slo_alerts.recording.rule_intervals import STEP, samples_within, seconds
from mm2slo_alerts.recording.short_windows import average_increase, bad_events
from mm2slo_alerts.rule_model import RecordingRule
from mm2slo_core.catalogue import (
    BAD_STEP,
    BAD_SUM,
    COVERAGE,
    DUE_STEP,
    EVENTS_STEP,
    EVENTS_SUM,
    EXCLUDED_STEP,
    LONG_WINDOWS,
    OBJECTIVE,
    SLI_EVENTS_TOTAL,
    SLI_LABELS,
    SLI_UNKNOWN_EVENTS_TOTAL,
    UNKNOWN_STEP,
)
from mm2slo_core.promql import aggregate, over, select

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.catalogue import RecordedSeries

_HOUR: Final = "1h"


def steps(scale: Scale) -> Iterator[RecordingRule]:
    """Return the steps without maintenance; excluded events are counted apart."""
    events, free = average_increase(SLI_EVENTS_TOTAL, STEP, scale), untouched(STEP, scale)
    unknown = average_increase(SLI_UNKNOWN_EVENTS_TOTAL, STEP, scale)
    yield RecordingRule(record=EVENTS_STEP.name, expr=f"{events}\n{free}")
    yield RecordingRule(record=BAD_STEP.name, expr=bad_events(EVENTS_STEP, STEP, scale))
    yield RecordingRule(record=UNKNOWN_STEP.name, expr=f"{unknown}\n{free}")
    yield RecordingRule(record=EXCLUDED_STEP.name, expr=f"{events}\n{touched(STEP, scale)}")
    yield RecordingRule(record=DUE_STEP.name, expr=_due_steps(scale))


def chains(windows: Sequence[str], scale: Scale) -> Iterator[RecordingRule]:
    """Return sums, error ratio and burn rate of each of *windows*."""
    for window in windows:
        length = seconds(window)
        events, bad = EVENTS_SUM[window], BAD_SUM[window]
        yield RecordingRule(record=events.name, expr=sum_of_steps(EVENTS_STEP, length, scale))
        yield RecordingRule(record=bad.name, expr=sum_of_steps(BAD_STEP, length, scale))
        share = ""
        if window in LONG_WINDOWS:
            yield measured_steps(window, scale)
            share = share_of_steps(window, scale)
        yield from error_ratio_rules(window, events, bad, share)


def sum_of_steps(series: RecordedSeries, length: float, scale: Scale) -> str:
    return str(over("sum_over_time", series, samples_within(length, STEP, scale)))


def count_of_steps(series: RecordedSeries, length: float, scale: Scale) -> str:
    """Count the recorded steps of the last *length* seconds."""
    return str(over("count_over_time", series, samples_within(length, STEP, scale)))


def hour_coverage(scale: Scale) -> RecordingRule:
    """Return the known share of the last hour; 0 if no due step was recorded."""
    length = seconds(_HOUR)
    events = sum_of_steps(EVENTS_STEP, length, scale)
    unknown = sum_of_steps(UNKNOWN_STEP, length, scale)
    scraped = count_of_steps(EVENTS_STEP, length, scale)
    due = count_of_steps(DUE_STEP, length, scale)
    return RecordingRule(
        record=COVERAGE[_HOUR].name,
        expr=f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({scraped} / {due}, 1)\nor\n0 * ({due} unless {scraped})",
    )


def _due_steps(scale: Scale) -> str:
    """An indicator is due if it had an objective a step earlier.

    Coverage thus starts with the indicator: the hour before a new flow is not missing. A flow that
    disappears is missing while its objective is still recorded.
    """
    now = aggregate("max", select(OBJECTIVE), SLI_LABELS)
    before = aggregate("max", select(OBJECTIVE, offset=scale(STEP)), SLI_LABELS)
    return f"0 * ({now} and {before}) + 1\n{untouched(STEP, scale)}"
