"""Recording rules: from event counters to error ratios, burn rates and remaining budgets.

Counts are recorded and divided last: five quiet minutes must not weigh as much as five busy ones.
Rules that must be consistent are in one group, which Prometheus evaluates in order at one instant:

- `mm2slo-events`, every 30 seconds: objectives, increases over 5m, 30m and 1h, error ratios;
- `mm2slo-steps`, every 5 minutes: increases over 5 minutes, their sums over 2h to 3d, coverage;
- `mm2slo-window`, every 5 minutes: sums over the objective's window, and the budget.

Series of another group are up to one of its intervals old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.recording.objective_series import objective_series
from mm2slo_alerts.recording.objective_window import budgets
from mm2slo_alerts.recording.rule_intervals import EVENTS_INTERVAL, STEP
from mm2slo_alerts.recording.short_windows import short_windows
from mm2slo_alerts.recording.steps import chains, hour_coverage, steps
from mm2slo_alerts.rule_model import PRODUCTION, Group, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives import ObjectiveRule

__all__ = ["groups"]


def groups(rules: Sequence[ObjectiveRule], scale: Scale = PRODUCTION) -> tuple[Group, ...]:
    """Return the groups for objectives *rules*; the first that matches a flow applies."""
    return (
        Group(
            name="mm2slo-events",
            interval=scale(EVENTS_INTERVAL),
            rules=(*objective_series(rules, scale), *short_windows(scale)),
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
