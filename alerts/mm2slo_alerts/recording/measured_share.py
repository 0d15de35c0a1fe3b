"""The measured share of a long window: its budget is that of the whole window.

The time before a flow existed, and time that was not scraped, count as events at the measured rate
that were good; planned maintenance does not count. A step without events is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.recording.rule_intervals import EVENTS_INTERVAL, STEP, samples_within, seconds
from mm2slo_alerts.rule_model import RecordingRule
from mm2slo_core.catalogue import EVENTS_INCREASE, EVENTS_STEP, EXCLUDED_STEP, MEASURED
from mm2slo_core.promql import number, over, select

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Scale

_PER_STEP: Final = STEP / EVENTS_INTERVAL


def measured_steps(window: str, scale: Scale) -> RecordingRule:
    """Return the rule that counts the steps of *window* with samples."""
    counted = over("count_over_time", EVENTS_STEP, samples_within(seconds(window), STEP, scale))
    return RecordingRule(record=MEASURED[window].name, expr=str(counted))


def measured_half_minutes(window: str, scale: Scale) -> RecordingRule:
    """Return the same for a window that is read from the counters, by evaluations."""
    length = samples_within(seconds(window), EVENTS_INTERVAL, scale)
    counted = over("count_over_time", EVENTS_INCREASE["5m"], length)
    return RecordingRule(record=MEASURED[window].name, expr=str(counted))


def share_of_steps(window: str, scale: Scale) -> str:
    """Return the factor of a sum of steps: measured steps of those without maintenance."""
    measured = select(MEASURED[window])
    steps = number(seconds(window) / STEP)
    excluded = excluded_steps(seconds(window), scale)
    return f"\n* {measured} / ({steps} - ({excluded} or 0 * {measured}))"


def share_of_half_minutes(window: str, scale: Scale) -> str:
    """Return the factor of a window that is read from the counters.

    At most 1, because excluded steps are recorded up to a step late.
    """
    measured = select(MEASURED[window])
    parts = number(seconds(window) / EVENTS_INTERVAL)
    excluded = f"{number(_PER_STEP)} * {excluded_steps(seconds(window), scale)}"
    return f"\n* clamp_max({measured} / ({parts} - ({excluded} or 0 * {measured})), 1)"


def excluded_steps(length: float, scale: Scale) -> str:
    """Return the number of steps of the last *length* seconds that maintenance excludes."""
    return str(over("count_over_time", EXCLUDED_STEP, samples_within(length, STEP, scale)))
