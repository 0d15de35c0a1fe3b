"""The status of an objective, with its reason."""

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
"""Minimum coverage of the last hour for a status."""
LOW_BUDGET: Final = 0.25
"""Share of the remaining budget below which the status is warning."""


class Status(StrEnum):
    """The status of an objective."""

    OK = "ok"
    WARNING = "warning"
    """The burn rate is too high, or the remaining budget is low."""
    BREACHED = "breached"
    """The error budget is exhausted."""
    NO_DATA = "no_data"
    """Events are expected, but coverage is too low."""
    IDLE = "idle"
    """No events, with full coverage."""


class Reason(StrEnum):
    """The reason of a status."""

    WITHIN_BUDGET = "within budget"
    RECOVERING = "burn rate above the threshold in the long window only"
    LOW_BUDGET = "less than 25 % of the error budget remains"
    BURNING = "burn rate above the threshold in both windows of a pair"
    EXHAUSTED = "error budget exhausted"
    NO_SAMPLES = "no samples"
    LOW_COVERAGE = "coverage of the last hour below 90 %"
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
    coverage: float | None,
) -> StatusResult:
    """The status of an objective; the first matching condition applies.

    *burns* are burn rates by window length in seconds; a missing one counts as 0. *coverage* is
    that of the last hour; None without any samples.
    """
    unknown = _unknown_status(budget, coverage)
    if unknown is not None:
        return unknown
    remaining = budget.remaining or 0.0
    if remaining <= 0:
        return StatusResult(Status.BREACHED, Reason.EXHAUSTED)
    burning, recovering = _pairs(objective, burns)
    if burning:
        return StatusResult(Status.WARNING, Reason.BURNING, burning)
    if remaining < LOW_BUDGET:
        return StatusResult(Status.WARNING, Reason.LOW_BUDGET)
    if recovering:
        return StatusResult(Status.OK, Reason.RECOVERING, recovering)
    return StatusResult(Status.OK, Reason.WITHIN_BUDGET)


def _unknown_status(budget: Budget, coverage: float | None) -> StatusResult | None:
    """The status if the budget cannot be evaluated, or else None."""
    if coverage is None:
        return StatusResult(Status.NO_DATA, Reason.NO_SAMPLES)
    if coverage < MIN_COVERAGE:
        return StatusResult(Status.NO_DATA, Reason.LOW_COVERAGE)
    return StatusResult(Status.IDLE, Reason.NO_EVENTS) if budget.remaining is None else None


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
