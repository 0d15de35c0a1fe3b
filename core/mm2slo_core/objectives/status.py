"""How an objective stands: one word, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.traffic import live_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.objectives.budget import Budget
    from mm2slo_core.objectives.objective import Objective, ObjectiveRule

LEAST_COVERAGE: Final = 0.9
"""Of the last hour; below it nothing can be said of now."""
LITTLE_LEFT: Final = 0.25
"""A quarter of the budget."""


class Status(StrEnum):
    """How an objective stands; no two of them are ever merged."""

    OK = "ok"
    WARNING = "warning"
    """It burns too fast, or little is left."""
    BREACHED = "breached"
    """The budget is used up."""
    NO_DATA = "no_data"
    """There should be figures, and there are none, or too few."""
    IDLE = "idle"
    """Nothing happened that could be judged, and nothing was missed."""


class Reason(StrEnum):
    """Why; a closed list."""

    WITHIN_BUDGET = "within budget"
    RECOVERING = "only the long window of a pair burns too fast"
    LITTLE_LEFT = "little of the budget is left"
    BURNING = "a pair of windows burns too fast"
    USED_UP = "the budget is used up"
    NOTHING_MEASURED = "nothing was measured"
    LOW_COVERAGE = "too little of the last hour is known"
    NO_EVENTS = "no events"
    AUDIT_FOUND = "an audit found faults"


@dataclass(frozen=True, slots=True)
class Standing:
    """A status, its reason, and the pair of windows that it is about, if any."""

    status: Status
    reason: Reason
    pair: str = ""


def standing(
    promise: Objective | ObjectiveRule,
    budget: Budget,
    burns: Mapping[float, float | None],
    *,
    coverage: float | None,
) -> Standing:
    """How the objective stands. The first of these that holds tells it.

    *burns* are burn rates by the length of their window in seconds; one that is missing does not
    burn. *coverage* is that of the last hour, None where nothing was measured at all.
    """
    blind = _blind(budget, coverage)
    if blind is not None:
        return blind
    # Without events there would be no remaining budget, and that was told above.
    remaining = budget.remaining or 0.0
    if remaining <= 0:
        return Standing(Status.BREACHED, Reason.USED_UP)
    burning, recovering = _pairs(promise, burns)
    if burning:
        return Standing(Status.WARNING, Reason.BURNING, burning)
    if remaining < LITTLE_LEFT:
        return Standing(Status.WARNING, Reason.LITTLE_LEFT)
    if recovering:
        return Standing(Status.OK, Reason.RECOVERING, recovering)
    return Standing(Status.OK, Reason.WITHIN_BUDGET)


def _blind(budget: Budget, coverage: float | None) -> Standing | None:
    """Why nothing can be said of the budget; None when something can."""
    if coverage is None:
        return Standing(Status.NO_DATA, Reason.NOTHING_MEASURED)
    if coverage < LEAST_COVERAGE:
        return Standing(Status.NO_DATA, Reason.LOW_COVERAGE)
    # What was seen all along and counted nothing has nothing to count.
    return Standing(Status.IDLE, Reason.NO_EVENTS) if budget.remaining is None else None


def _pairs(
    promise: Objective | ObjectiveRule, burns: Mapping[float, float | None]
) -> tuple[str, str]:
    """The first pair of which both windows burn too fast, and the first whose long one does."""
    burning = recovering = ""
    for pair in live_pairs(promise):
        factor = pair.factor(promise.window)
        long, short = (burns.get(length) or 0.0 for length in (pair.long, pair.short))
        if long > factor < short:
            burning = burning or pair.name
        elif long > factor:
            recovering = recovering or pair.name
    return burning, recovering
