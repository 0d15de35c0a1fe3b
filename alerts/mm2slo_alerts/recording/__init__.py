"""The recording rules: from counters of events to error ratios, burn rates and what is left.

Counts are recorded, never ratios of ratios: a quiet five minutes must not weigh as much as a busy
one. Everything that must fit together is in one group, whose rules Prometheus evaluates in order
at one instant:

- `mm2slo-events`, every 30 seconds: the promise, increases over 5m, 30m and 1h, their verdict;
- `mm2slo-steps`, every 5 minutes: increments of 5 minutes, their sums over 2h to 3d, coverage;
- `mm2slo-window`, every 5 minutes: sums over the objective's own window, and the budget.

What a group reads of another one is up to one interval of that one old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.model import PRODUCTION, Group, Scale
from mm2slo_alerts.recording.promise import promise
from mm2slo_alerts.recording.short import short_windows
from mm2slo_alerts.recording.steps import chains, hour_coverage, steps
from mm2slo_alerts.recording.timing import EVENTS_INTERVAL, STEP
from mm2slo_alerts.recording.window import budgets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives import ObjectiveRule

__all__ = ["groups"]


def groups(rules: Sequence[ObjectiveRule], scale: Scale = PRODUCTION) -> tuple[Group, ...]:
    """The groups for objectives *rules*, of which the first that matches a flow holds."""
    return (
        Group(
            name="mm2slo-events",
            interval=scale(EVENTS_INTERVAL),
            rules=(*promise(rules, scale), *short_windows(scale)),
        ),
        Group(
            name="mm2slo-steps",
            interval=scale(STEP),
            rules=(*steps(scale), *chains(scale), hour_coverage(scale)),
        ),
        Group(
            name="mm2slo-window",
            interval=scale(STEP),
            rules=budgets({rule.window for rule in rules}, scale),
        ),
    )
