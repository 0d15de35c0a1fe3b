"""Error budget, burn rate and error ratio, and the verdict on an objective by them.

Formulas: The Site Reliability Workbook, chapters 2 and 5. With the objective T, the budget is B = 1
- T, the error ratio e = bad / settled, the burn rate e / B. A budget belongs to the whole of its
window W: with samples in M of it, the consumed share is e / B * M / W, so that five minutes of
outage cost the same however long the flow exists. The remaining budget is not clamped: -2.4 and
-0.01 need different decisions.

The verdict is about what is known; whether that is current is a question of its own
(`Entry.stale_since`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from mm2slo_core.objectives.objective import ObjectiveTerms, live_pairs

MIN_COVERAGE: Final = 0.9
"""Minimum coverage of a period for a reliable comparison."""

LOW_BUDGET: Final = 0.25
"""Share of the remaining budget below which an objective is at risk."""


class Status(StrEnum):
    """The verdict on an objective."""

    MET = "met"
    AT_RISK = "at_risk"
    """The burn rate is too high, or the remaining budget is low."""
    BREACHED = "breached"
    """The error budget is exhausted."""
    NO_DATA = "no_data"
    """No event of the window could be measured."""
    IDLE = "idle"
    """No events."""


class Reason(StrEnum):
    """The reason of a status."""

    WITHIN_BUDGET = "within budget"
    RECOVERING = "burn rate above the threshold in the long window only"
    LOW_BUDGET = "less than 25 % of the error budget remains"
    BURNING = "burn rate above the threshold in both windows of a pair"
    EXHAUSTED = "error budget exhausted"
    NO_SAMPLES = "no samples"
    UNMEASURED = "no event could be measured"
    NO_EVENTS = "no events"
    AUDIT_FAULTS = "audit found faults"


@dataclass(frozen=True, slots=True)
class StatusResult:
    """A status, its reason, and the window pair that caused it, if any."""

    status: Status
    reason: Reason
    pair: str = ""


def evaluate_status(
    objective: ObjectiveTerms,
    budget: Budget,
    burns: Mapping[float, float | None],
    *,
    unknown: float = 0.0,
    finished: bool = False,
) -> StatusResult:
    """The status of an objective; the first matching condition applies.

    *burns* are burn rates by window length in seconds; a missing one counts as 0. *unknown* is the
    number of events that could not be measured. A *finished* period keeps the rest of its budget.
    """
    remaining = budget.remaining
    if remaining is None:
        return _without_events(budget, unknown)
    # Before the burn rates: an exhausted budget stays breached when nothing burns any more.
    if remaining <= 0:
        return StatusResult(Status.BREACHED, Reason.EXHAUSTED)
    burning, recovering = ("", "") if finished else _pairs(objective, burns)
    if burning:
        return StatusResult(Status.AT_RISK, Reason.BURNING, burning)
    if remaining < LOW_BUDGET and not finished:
        return StatusResult(Status.AT_RISK, Reason.LOW_BUDGET)
    reason = Reason.RECOVERING if recovering else Reason.WITHIN_BUDGET
    return StatusResult(Status.MET, reason, recovering)


def _without_events(budget: Budget, unknown: float) -> StatusResult:
    if not budget.measured:
        return StatusResult(Status.NO_DATA, Reason.NO_SAMPLES)
    if unknown > 0:
        return StatusResult(Status.NO_DATA, Reason.UNMEASURED)
    return StatusResult(Status.IDLE, Reason.NO_EVENTS)


def _pairs(objective: ObjectiveTerms, burns: Mapping[float, float | None]) -> tuple[str, str]:
    """The first pair that burns in both windows, and the first that burns in the long one only."""
    burning = recovering = ""
    for pair in live_pairs(objective):
        factor = pair.factor(objective.window)
        long, short = (burns.get(length) or 0.0 for length in (pair.long, pair.short))
        # Strictly above, as the alert rules compare; both windows, so that the verdict ends soon
        # after the fault (SRE Workbook, chapter 5).
        if long > factor < short:
            burning = burning or pair.name
        elif long > factor:
            recovering = recovering or pair.name
    return burning, recovering


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

    def __post_init__(self) -> None:
        """The window is at least what was measured in it."""
        # Steps are counted where they end: the first one after maintenance, or after the start of
        # the window, may have started before.
        object.__setattr__(self, "window", max(self.window, self.measured))

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
        # At a burn rate of 1, the whole budget lasts for exactly one window.
        return self.remaining * self.window / burn if burn else None

    def projected(self, burn: float | None, ahead: float) -> float | None:
        """The remaining share after *ahead* seconds at the burn rate *burn*, unclamped.

        Exact for a calendar window that ends then, a lower bound for a rolling one. None without
        events.
        """
        if self.remaining is None or burn is None:
            return None
        return self.remaining - burn * ahead / self.window
