"""How often rules are recorded, and what ranges of them hold how many samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import WINDOW_SECONDS

if TYPE_CHECKING:
    from mm2slo_alerts.model import Scale

EVENTS_INTERVAL: Final = 30.0
"""Seconds between two evaluations of the short windows."""
STEP: Final = 300.0
"""Seconds: the length of a step, and the time between two."""
SETTLES: Final = 120.0
"""Seconds after planned maintenance in which its events still settle: a canary that was sent at
its end is judged by its deadline, 60 s by default, and scraped after that."""
REMEMBERED: Final = "1d"
"""For so long an objective outlives the counters it is about: a budget must not vanish with the
exporter that counts it, and a flow that is gone for good must not be missed for ever."""


def seconds(window: str) -> float:
    """The length of a window that has a name."""
    return WINDOW_SECONDS[window]


def samples_within(length: float, interval: float, scale: Scale) -> float:
    """A range (seconds) that holds exactly the samples of the last *length*, one per *interval*.

    Half an interval short, since Prometheus 2 counts a sample on the range's older edge and
    Prometheus 3 does not: [1h] of samples every 5 minutes are 13 there and 12 here.
    """
    return scale(length) - scale(interval) / 2
