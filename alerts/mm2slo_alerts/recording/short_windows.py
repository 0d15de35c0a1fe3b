"""Windows of 5 minutes and an hour, computed from the counters every 30 seconds.

Sums of recorded steps would delay pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.recording.error_ratio import error_ratio_rules
from mm2slo_alerts.recording.maintenance_filter import touched, untouched
from mm2slo_alerts.recording.measured_share import measured_half_minutes, share_of_half_minutes
from mm2slo_alerts.recording.rule_intervals import EVENTS_INTERVAL, samples_within, seconds
from mm2slo_alerts.rule_model import RecordingRule
from mm2slo_core.catalogue import (
    BAD_INCREASE,
    DIRECT_WINDOWS,
    EVENTS_INCREASE,
    LONG_WINDOWS,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_LABELS,
)
from mm2slo_core.promql import Vector, aggregate, number, over, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.catalogue import Metric, RecordedSeries

_SHORTEST: Final = "5m"
"""Longer windows that touch maintenance are sums of this one."""


def short_windows(scale: Scale) -> tuple[RecordingRule, ...]:
    """Return events, bad events, error ratio and burn rate of each direct window."""
    return tuple(rule for window in DIRECT_WINDOWS for rule in _window(window, scale))


def average_increase(metric: Metric, length: float, scale: Scale) -> Vector:
    """Return the increase of *metric* in *length* seconds, averaged over the replicas.

    Averaging bad and all events keeps their ratio and counts no event twice.
    """
    return aggregate("avg", over("increase", metric, scale(length)), SLI_LABELS)


def bad_events(events: RecordedSeries, length: float, scale: Scale) -> str:
    """Return all events minus good ones; without a counter of good events all are bad.

    At least 0: after a restart only one of the two counters may exceed its old value. Both counters
    are read here: the recorded *events* may be one evaluation old, and serve as a zero only.
    """
    total, good = (
        average_increase(counter, length, scale)
        for counter in (SLI_EVENTS_TOTAL, SLI_GOOD_EVENTS_TOTAL)
    )
    return (
        f"clamp_min(\n  {total}\n  - ({good} or 0 * {select(events)}),\n  0\n)\n"
        f"{untouched(length, scale)}"
    )


def _window(window: str, scale: Scale) -> Iterator[RecordingRule]:
    events, bad, length = EVENTS_INCREASE[window], BAD_INCREASE[window], seconds(window)
    all_events = average_increase(SLI_EVENTS_TOTAL, length, scale)
    counted = {
        events: f"{all_events}\n{untouched(length, scale)}",
        bad: bad_events(events, length, scale),
    }
    for series, inner in ((events, EVENTS_INCREASE), (bad, BAD_INCREASE)):
        expr = counted[series]
        if window != _SHORTEST:
            sums = _without_maintenance(inner[_SHORTEST], length, scale)
            expr = f"(\n{expr}\n)\nor\n{sums}"
        yield RecordingRule(record=series.name, expr=expr)
    share = ""
    if window in LONG_WINDOWS:
        yield measured_half_minutes(window, scale)
        share = share_of_half_minutes(window, scale)
    yield from error_ratio_rules(window, events, bad, share)


def _without_maintenance(inner: RecordedSeries, length: float, scale: Scale) -> str:
    """Sum recorded increases, which leave out maintenance.

    They overlap: each event is in ten of them in production.
    """
    parts = over("sum_over_time", inner, samples_within(length, EVENTS_INTERVAL, scale))
    overlap = number(seconds(_SHORTEST) / EVENTS_INTERVAL)
    return f"{parts} / {overlap}\n{touched(length, scale)}"
