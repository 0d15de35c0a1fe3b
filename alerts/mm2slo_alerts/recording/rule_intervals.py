"""Intervals of the recording rules, and ranges with a fixed number of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import WINDOW_SECONDS

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Scale

EVENTS_INTERVAL: Final = 30.0
"""Seconds between two evaluations of the short windows."""
STEP: Final = 300.0
"""Seconds: length of a step, and time between two."""
LATE_STEP: Final = 2.5 * STEP
"""The range in which the last value of a series that is recorded with each step is found: two
steps, because one evaluation may be late, and half a step for its delivery."""
SETTLES: Final = 120.0
"""Seconds after planned maintenance in which its events still settle: a canary sent at its end has
a deadline, 60 s by default, and is scraped after that."""
REMEMBERED: Final = "1d"
"""How long an objective outlives its counters: a budget must not disappear with the exporter, and a
removed flow must not be missed forever."""


def seconds(window: str) -> float:
    return WINDOW_SECONDS[window]


def samples_within(length: float, interval: float, scale: Scale) -> float:
    """Return a range (seconds) with exactly the samples of the last *length*, one per *interval*.

    It is half an interval shorter: Prometheus 2 includes a sample on the range's older edge,
    Prometheus 3 does not ([1h] of samples every 5 minutes are 13 or 12).
    """
    return scale(length) - scale(interval) / 2
