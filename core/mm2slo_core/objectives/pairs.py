"""Pairs of windows over which an error budget's burning is watched.

Google, The Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts": the long
window gives significance, the short one (a twelfth) lets the alert end soon after the fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mm2slo_core.objectives.objective import DAY, DEFAULT_WINDOW, Severity

_MINUTE = 60.0
_HOUR = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnPair:
    """Alerts when both windows burn fast enough to spend `share` of the budget within `long`.

    Times are in seconds. `hold` is Prometheus's `for`; `keep` its `keep_firing_for`. `min_bad`
    bad events within the long window are needed, so that one event never alerts.
    """

    name: str
    severity: Severity
    share: float
    long: float
    short: float
    hold: float
    keep: float = 0.0
    min_bad: int = 3

    def factor(self, window: float) -> float:
        """The burn rate that spends `share` of the budget of *window* seconds within `long`.

        Of short windows `LEAST_FACTOR`, which spends more.
        """
        return max(self.share * window / self.long, LEAST_FACTOR)

    def can_fire(self, target: float, window: float) -> bool:
        """Whether a total outage reaches the factor: error ratios end at 1."""
        return self.factor(window) * (1.0 - target) < 1.0

    def min_events(self, target: float, window: float) -> float:
        """Events that the long window must hold before `min_bad` bad ones are needed to fire."""
        return self.min_bad / (self.factor(window) * (1.0 - target))


BURN_PAIRS = (
    BurnPair(
        name="fast",
        severity=Severity.PAGE,
        share=0.02,
        long=_HOUR,
        short=5 * _MINUTE,
        hold=_MINUTE,
        keep=5 * _MINUTE,
    ),
    BurnPair(
        name="steady",
        severity=Severity.PAGE,
        share=0.05,
        long=6 * _HOUR,
        short=30 * _MINUTE,
        hold=5 * _MINUTE,
        keep=5 * _MINUTE,
    ),
    BurnPair(
        name="slow",
        severity=Severity.TICKET,
        share=0.10,
        long=DAY,
        short=2 * _HOUR,
        hold=15 * _MINUTE,
    ),
    BurnPair(
        name="creeping",
        severity=Severity.TICKET,
        share=0.10,
        long=3 * DAY,
        short=6 * _HOUR,
        hold=30 * _MINUTE,
    ),
)
SLOWEST_PAIR: Final = max(BURN_PAIRS, key=lambda pair: pair.long)
SHORTEST_WINDOW: Final = SLOWEST_PAIR.long
"""Seconds: of an objective that every pair can watch."""
LEAST_FACTOR: Final = SLOWEST_PAIR.share * DEFAULT_WINDOW / SLOWEST_PAIR.long
"""What the slowest pair asks of four weeks, and no pair less of shorter windows: a tenth of a
week's budget within three days is no more than a flow spends that keeps its promise with ease."""
