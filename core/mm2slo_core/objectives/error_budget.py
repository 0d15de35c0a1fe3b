"""Error ratio, burn rate and error budget, from counts of events.

Formulas: The Site Reliability Workbook, chapters 2 and 5. With the objective T and the window W,
the budget is B = 1 - T, the error ratio e = bad / settled, the burn rate e / B; over the window
itself the burn rate is the consumed share of the budget. The remaining budget is not clamped: -2.4
and -0.01 need different decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from mm2slo_core.objectives.rule_evaluation import Counts

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
    """Events of one indicator within a window. Excluded events are in no other count."""

    good: float = 0.0
    bad: float = 0.0
    unknown: float = 0.0
    excluded: float = 0.0

    def __post_init__(self) -> None:
        wrong = [value for value in (self.good, self.bad, self.unknown, self.excluded) if value < 0]
        if wrong:
            raise ValueError(f"event count is {wrong[0]!r}; expected 0 or more")

    @property
    def total(self) -> float:
        """Settled events, good and bad."""
        return self.good + self.bad

    @property
    def coverage(self) -> float | None:
        """The settled share of events; None without events."""
        seen = self.total + self.unknown
        return self.total / seen if seen else None

    @property
    def counts(self) -> Counts:
        """Bad and settled events."""
        return Counts(self.bad, self.total)

    def __add__(self, other: EventCounts) -> EventCounts:
        return EventCounts(
            good=self.good + other.good,
            bad=self.bad + other.bad,
            unknown=self.unknown + other.unknown,
            excluded=self.excluded + other.excluded,
        )


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
    """The error budget of one objective at one instant.

    As a share of itself (`consumed`, `remaining`), in events, and in minutes of total outage.
    Events and minutes depend on the event rate; for indicators that count events, minutes are
    estimated at the mean rate of the window.
    """

    target: float
    window: float
    """Seconds."""
    counts: Counts

    @property
    def consumed(self) -> float | None:
        """The spent share, above 1 when overspent; None without events."""
        return burn_rate(self.counts, self.target)

    @property
    def remaining(self) -> float | None:
        """The remaining share, below 0 when overspent; None without events."""
        return None if self.consumed is None else 1.0 - self.consumed

    @property
    def total_ratio(self) -> float:
        """The share of events that may be bad."""
        return allowed_ratio(self.target)

    @property
    def total_events(self) -> float:
        """Events that may be bad."""
        return self.total_ratio * self.counts.events

    @property
    def consumed_events(self) -> float:
        """Bad events."""
        return self.counts.bad

    @property
    def remaining_events(self) -> float:
        """Events that may still be bad; below 0 when overspent."""
        return self.total_events - self.counts.bad

    @property
    def total_minutes(self) -> float:
        """Minutes of total outage that the window allows."""
        return self.total_ratio * self.window / _MINUTE

    @property
    def consumed_minutes(self) -> float | None:
        """Bad events in minutes of total outage; None without events."""
        return None if self.consumed is None else self.consumed * self.total_minutes

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
