"""The window pairs of burn rate alerts.

Source: The Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts". The long
window gives significance; the short one, a twelfth of it, resolves the alert soon after the fault.
Both pairs that page use the same short window, so that an inhibiting cause need not outlast 30
minutes of bad events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mm2slo_core.objectives.objective import DAY, DEFAULT_WINDOW, Severity

_MINUTE = 60.0
_HOUR = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPair:
    """Alerts when both windows burn fast enough to spend `share` of the budget within `long`.

    Times are in seconds. `hold` is Prometheus's `for`; `keep` is its `keep_firing_for`. At least
    `min_bad` bad events within the long window are required.
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

        At least `MIN_FACTOR`, which spends more of short windows.
        """
        return max(self.share * window / self.long, MIN_FACTOR)

    def can_fire(self, target: float, window: float) -> bool:
        """Whether a total outage, with an error ratio of 1, exceeds the factor."""
        return self.factor(window) * (1.0 - target) < 1.0


WINDOW_PAIRS = (
    WindowPair(
        name="fast",
        severity=Severity.PAGE,
        share=0.02,
        long=_HOUR,
        short=5 * _MINUTE,
        hold=_MINUTE,
        keep=5 * _MINUTE,
    ),
    WindowPair(
        name="steady",
        severity=Severity.PAGE,
        share=0.05,
        long=6 * _HOUR,
        short=5 * _MINUTE,
        hold=5 * _MINUTE,
        keep=5 * _MINUTE,
    ),
    WindowPair(
        name="slow",
        severity=Severity.TICKET,
        share=0.10,
        long=DAY,
        short=2 * _HOUR,
        hold=15 * _MINUTE,
    ),
    WindowPair(
        name="creeping",
        severity=Severity.TICKET,
        share=0.10,
        long=3 * DAY,
        short=6 * _HOUR,
        hold=30 * _MINUTE,
    ),
)
SLOWEST_PAIR: Final = max(WINDOW_PAIRS, key=lambda pair: pair.long)
MIN_WINDOW: Final = SLOWEST_PAIR.long
"""Seconds; the shortest window of an objective."""
MIN_FACTOR: Final = SLOWEST_PAIR.share * DEFAULT_WINDOW / SLOWEST_PAIR.long
"""The factor of the slowest pair for four weeks, and the lower limit for shorter windows: a flow
well
within its objective also spends a tenth of a week's budget within three days."""
