"""The windows of 5 minutes to an hour, taken from the counters themselves every 30 seconds.

Sums of recorded increments would lag behind a fault; the page that waits for an hour's window to
fill is the reason to read the counters here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.model import RecordingRule
from mm2slo_alerts.recording.maintenance import touched, untouched
from mm2slo_alerts.recording.timing import EVENTS_INTERVAL, samples_within, seconds
from mm2slo_alerts.recording.verdict import verdict
from mm2slo_core.catalogue import (
    BAD_INCREASE,
    DIRECT_WINDOWS,
    EVENTS_INCREASE,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_LABELS,
)
from mm2slo_core.promql import Vector, aggregate, number, over, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_alerts.model import Scale
    from mm2slo_core.catalogue import Metric, RecordedSeries

_INNER: Final = "5m"
"""The shortest window, of which longer ones are made while maintenance lies in them."""


def short_windows(scale: Scale) -> tuple[RecordingRule, ...]:
    """Events, bad events, error ratio and burn rate of each direct window."""
    return tuple(rule for window in DIRECT_WINDOWS for rule in _window(window, scale))


def pooled(metric: Metric, length: float, scale: Scale) -> Vector:
    """What *metric* counted in the last *length* seconds, on average over the replicas.

    Bad and all events are averaged alike, so their ratio is that of the pooled events, and no
    event counts twice.
    """
    return aggregate("avg", over("increase", metric, scale(length)), SLI_LABELS)


def bad_of(events: RecordedSeries, length: float, scale: Scale) -> str:
    """Bad events: all that are not good. Without a counter of good ones all are bad.

    Not below zero: after a restart one of the two counters may have passed its old value.
    """
    good = pooled(SLI_GOOD_EVENTS_TOTAL, length, scale)
    total = select(events)
    return f"clamp_min(\n  {total}\n  - ({good} or 0 * {total}),\n  0\n)"


def _window(window: str, scale: Scale) -> Iterator[RecordingRule]:
    events, bad, length = EVENTS_INCREASE[window], BAD_INCREASE[window], seconds(window)
    free = untouched(length, scale)
    all_events = f"{pooled(SLI_EVENTS_TOTAL, length, scale)}\n{free}"
    if window == _INNER:
        yield RecordingRule(record=events.name, expr=all_events)
        # Where maintenance was, there are no events to subtract from.
        yield RecordingRule(record=bad.name, expr=bad_of(events, length, scale))
    else:
        yield RecordingRule(
            record=events.name,
            expr=f"(\n{all_events}\n)\nor\n{_around(EVENTS_INCREASE[_INNER], length, scale)}",
        )
        yield RecordingRule(
            record=bad.name,
            expr=f"(\n{bad_of(events, length, scale)}\n{free}\n)\nor\n"
            f"{_around(BAD_INCREASE[_INNER], length, scale)}",
        )
    yield from verdict(window, events, bad)


def _around(inner: RecordedSeries, length: float, scale: Scale) -> str:
    """Events of a window in which maintenance lies: the recorded increments, which leave it out.

    Each event is in as many of them as fit into one, ten in production.
    """
    parts = over("sum_over_time", inner, samples_within(length, EVENTS_INTERVAL, scale))
    overlap = number(seconds(_INNER) / EVENTS_INTERVAL)
    return f"{parts} / {overlap}\n{touched(length, scale)}"
