"""Event rates that an objective needs to be alertable.

One bad event of N is an error ratio of 1/N. If it exceeds the threshold of a window pair, only
`min_bad` keeps the pair from alerting on a single event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.window_pairs import WINDOW_PAIRS, WindowPair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.objectives.objective import Objective, ObjectiveRule
    from mm2slo_core.sli_counters import SliKey

HOUR: Final = 3_600.0
"""Seconds."""
COMMON_TARGETS: Final = (0.9999, 0.9995, 0.999, 0.995, 0.99, 0.95, 0.9)
"""Common targets, strictest first."""


class PublishedIndicator(NamedTuple):
    """An indicator that a flow publishes, and its expected event rate."""

    key: SliKey
    events_per_hour: float


def allowed_pairs(
    max_severity: Severity, pairs: Iterable[WindowPair] = WINDOW_PAIRS
) -> tuple[WindowPair, ...]:
    """The pairs of *pairs* with a severity up to *max_severity*."""
    return tuple(
        pair for pair in pairs if max_severity is Severity.PAGE or pair.severity is max_severity
    )


def live_pairs(objective: Objective | ObjectiveRule) -> tuple[WindowPair, ...]:
    """The pairs that fire in a total outage; the others are omitted from the alerts."""
    return tuple(
        pair
        for pair in allowed_pairs(objective.max_severity)
        if pair.can_fire(objective.target, objective.window)
    )


def dead_pairs(objective: Objective | ObjectiveRule) -> tuple[WindowPair, ...]:
    """The pairs that cannot fire, because their factor times the error budget is 1 or more."""
    live = live_pairs(objective)
    return tuple(pair for pair in allowed_pairs(objective.max_severity) if pair not in live)


def threshold(pair: WindowPair, target: float, window: float) -> float:
    """The error ratio above which *pair* alerts."""
    return pair.factor(window) * (1.0 - target)


def single_event_pairs(
    objective: Objective | ObjectiveRule, events_per_hour: float
) -> tuple[WindowPair, ...]:
    """Live pairs whose threshold a single bad event exceeds at the expected event rate."""
    return tuple(
        pair
        for pair in live_pairs(objective)
        if events_per_hour * pair.long / HOUR * threshold(pair, objective.target, objective.window)
        < 1
    )


def is_alertable(
    target: float, max_severity: Severity, window: float, events_per_hour: float
) -> bool:
    """Whether at least one pair can fire, and none on a single event."""
    live = [pair for pair in allowed_pairs(max_severity) if pair.can_fire(target, window)]
    return bool(live) and all(
        events_per_hour * pair.long / HOUR * threshold(pair, target, window) >= 1 for pair in live
    )


def strictest_target(
    wanted: float, max_severity: Severity, window: float, events_per_hour: float
) -> float | None:
    """*wanted*, or the strictest common target below it that is alertable; None without any."""
    candidates = (wanted, *(target for target in COMMON_TARGETS if target < wanted))
    return next(
        (
            target
            for target in candidates
            if is_alertable(target, max_severity, window, events_per_hour)
        ),
        None,
    )
