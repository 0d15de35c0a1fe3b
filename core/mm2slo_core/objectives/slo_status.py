"""The verdict on an objective, with its reason.

It is about what is known; whether that is current is a question of its own (`Entry.stale_since`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.traffic_limits import live_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.objectives.error_budget import Budget
    from mm2slo_core.objectives.objective import Objective, ObjectiveRule

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
    objective: Objective | ObjectiveRule,
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


def _pairs(
    objective: Objective | ObjectiveRule, burns: Mapping[float, float | None]
) -> tuple[str, str]:
    """The first pair that burns in both windows, and the first that burns in the long one only."""
    burning = recovering = ""
    for pair in live_pairs(objective):
        factor = pair.factor(objective.window)
        long, short = (burns.get(length) or 0.0 for length in (pair.long, pair.short))
        if long > factor < short:
            burning = burning or pair.name
        elif long > factor:
            recovering = recovering or pair.name
    return burning, recovering
