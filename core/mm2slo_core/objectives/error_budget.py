"""Error ratio, burn rate and error budget, from counts of events.

Formulas: The Site Reliability Workbook, chapters 2 and 5. With the objective T, the budget is
B = 1 - T, the error ratio e = bad / settled, the burn rate e / B. A budget belongs to the whole of
its window W: with samples in M of it, the consumed share is e / B * M / W, so that five minutes of
outage cost the same however long the flow exists. The remaining budget is not clamped: -2.4 and
-0.01 need different decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

_MINUTE: Final = 60.0


class Counts(NamedTuple):
    """Bad and settled events; fractional where replicas are averaged."""

    bad: float
    events: float


def error_ratio(counts: Counts) -> float | None:
    """The share of bad events; None without events."""
    return counts.bad / counts.events if counts.events > 0 else None


@lru_cache(maxsize=1024)
def allowed_ratio(target: float) -> float:
    """The share of events that may be bad: 0.001 for 0.999.

    Decimal, because the binary difference is slightly larger and an exactly exhausted budget would
    not be exhausted.
    """
    return float(1 - Decimal(repr(target)))


def burn_rate(counts: Counts, target: float) -> float | None:
    """The burn rate of *counts* for *target*; None without events.

    Raises ValueError for a target outside of (0, 1).
    """
    if not 0 < target < 1:
        raise ValueError(f"target is {target!r}; expected a share between 0 and 1")
    error = error_ratio(counts)
    return None if error is None else error / allowed_ratio(target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The error budget of one objective at one instant, for the whole of its window.

    Events are expected at the rate of the measured time, also before a flow existed, where nothing
    was measured, and in time to come. As a share of itself (`consumed`, `remaining`), in events,
    and in minutes of total outage; for indicators that count events, minutes are estimated at the
    mean rate.
    """

    target: float
    window: float
    """Seconds without planned maintenance, elapsed or not."""
    measured: float
    """Seconds of the window with samples, whether or not there were events."""
    counts: Counts

    @property
    def consumed(self) -> float | None:
        """The spent share, above 1 when overspent; None without events."""
        burn = burn_rate(self.counts, self.target)
        return None if burn is None else burn * (self.measured / self.window)

    @property
    def remaining(self) -> float | None:
        """The remaining share, below 0 when overspent; None without events."""
        return None if self.consumed is None else 1.0 - self.consumed

    @property
    def total_events(self) -> float:
        """Events that may be bad, of those expected in the window."""
        if not self.measured:
            return 0.0
        return allowed_ratio(self.target) * self.counts.events * (self.window / self.measured)

    @property
    def total_minutes(self) -> float:
        """Minutes of total outage that the window allows."""
        return allowed_ratio(self.target) * self.window / _MINUTE

    @property
    def remaining_minutes(self) -> float | None:
        """Remaining minutes of total outage; below 0 when overspent; None without events."""
        return None if self.remaining is None else self.remaining * self.total_minutes

    def exhaustion(self, burn: float | None) -> float | None:
        """Seconds until the budget is exhausted at the burn rate *burn*; 0 if it is exhausted.

        None without events or burn. Events that leave a rolling window meanwhile are ignored, so
        the actual time may be longer.
        """
        if self.remaining is None:
            return None
        if self.remaining <= 0:
            return 0.0
        return self.remaining * self.window / burn if burn else None

    def projected(self, burn: float | None, ahead: float) -> float | None:
        """The remaining share after *ahead* seconds at the burn rate *burn*, unclamped.

        Exact for a calendar window that ends then, a lower bound for a rolling one. None without
        events.
        """
        if self.remaining is None or burn is None:
            return None
        return self.remaining - burn * ahead / self.window
