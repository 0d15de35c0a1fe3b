"""What the traffic of a flow carries: objectives that a few events can still be judged by.

One bad event of N is an error ratio of 1/N. Where that alone exceeds a pair's threshold, the
pair's windows say nothing about the flow, and its guard of `min_bad` events decides alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.pairs import BURN_PAIRS, BurnPair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.objectives.objective import Objective, ObjectiveRule
    from mm2slo_core.sli import SliKey

HOUR: Final = 3_600.0
"""Seconds."""
COMMON_TARGETS: Final = (0.9999, 0.9995, 0.999, 0.995, 0.99, 0.95, 0.9)
"""Targets that people promise, strictest first."""


class Published(NamedTuple):
    """An indicator that a flow publishes, and how many events to expect of it."""

    key: SliKey
    events_per_hour: float


def watching(worst: Severity, pairs: Iterable[BurnPair] = BURN_PAIRS) -> tuple[BurnPair, ...]:
    """The pairs that watch an objective whose gravest severity is *worst*."""
    return tuple(pair for pair in pairs if worst is Severity.PAGE or pair.severity is worst)


def live_pairs(promise: Objective | ObjectiveRule) -> tuple[BurnPair, ...]:
    """The pairs that a total outage makes fire; the others are dropped from the alerts."""
    return tuple(
        pair for pair in watching(promise.worst) if pair.can_fire(promise.target, promise.window)
    )


def dead_pairs(promise: Objective | ObjectiveRule) -> tuple[BurnPair, ...]:
    """The pairs that can never fire: their factor times the budget is a share of 1 or more."""
    live = live_pairs(promise)
    return tuple(pair for pair in watching(promise.worst) if pair not in live)


def threshold(pair: BurnPair, target: float, window: float) -> float:
    """The share of bad events above which *pair* alerts."""
    return pair.factor(window) * (1.0 - target)


def hasty_pairs(promise: Objective | ObjectiveRule, events_per_hour: float) -> tuple[BurnPair, ...]:
    """Live pairs whose threshold a single bad event of the expected traffic exceeds."""
    return tuple(
        pair
        for pair in live_pairs(promise)
        if events_per_hour * pair.long / HOUR * threshold(pair, promise.target, promise.window) < 1
    )


def carries(target: float, worst: Severity, window: float, events_per_hour: float) -> bool:
    """Whether at least one pair can fire, and none on a single event of the traffic."""
    live = [pair for pair in watching(worst) if pair.can_fire(target, window)]
    return bool(live) and all(
        events_per_hour * pair.long / HOUR * threshold(pair, target, window) >= 1 for pair in live
    )


def strictest(
    wanted: float, worst: Severity, window: float, events_per_hour: float
) -> float | None:
    """*wanted*, or the strictest common target below it that the traffic carries."""
    candidates = (wanted, *(target for target in COMMON_TARGETS if target < wanted))
    return next(
        (target for target in candidates if carries(target, worst, window, events_per_hour)), None
    )
