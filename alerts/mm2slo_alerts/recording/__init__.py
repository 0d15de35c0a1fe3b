"""Recording rules: from event counters to error ratios, burn rates and remaining budgets.

Counts are recorded and divided last: five quiet minutes must not weigh as much as five busy ones.
Rules that must be consistent are in one group, which Prometheus evaluates in order at one instant;
a group has at most 20 rules, Mimir's default limit:

- `mm2slo-objectives`, every 30 seconds: targets and windows; more groups for more objectives;
- `mm2slo-events`, every 30 seconds: increases over 5m and 1h, error ratios;
- `mm2slo-steps`, every 5 minutes: increases over 5 minutes, their sums over 2h and 6h, coverage;
- `mm2slo-days`, every 5 minutes: sums of steps over 1d and 3d;
- `mm2slo-window`, every 5 minutes: sums over the objective's window, and the budget.

Every recorded series may be one evaluation old, also in its own group (vmalert with remote write):
those of 5-minute groups are read over ranges, and no count is subtracted from a recorded one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.recording.objective_series import objective_series
from mm2slo_alerts.recording.objective_window import budgets
from mm2slo_alerts.recording.rule_intervals import EVENTS_INTERVAL, STEP
from mm2slo_alerts.recording.short_windows import short_windows
from mm2slo_alerts.recording.steps import chains, hour_coverage, steps
from mm2slo_alerts.rule_model import PRODUCTION, Group, Scale
from mm2slo_core.catalogue import CHAIN_WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_alerts.rule_model import RecordingRule
    from mm2slo_core.objectives import ObjectiveRule

__all__ = ["groups"]


_MOST_RULES: Final = 20
_HOURS, _DAYS = CHAIN_WINDOWS[:2], CHAIN_WINDOWS[2:]


def groups(rules: Sequence[ObjectiveRule], scale: Scale = PRODUCTION) -> tuple[Group, ...]:
    """Return the groups for objectives *rules*; the first that matches a flow applies."""
    often, seldom = scale(EVENTS_INTERVAL), scale(STEP)
    of_hours = (*steps(scale), *chains(_HOURS, scale), hour_coverage(scale))
    return (
        *_objective_groups(objective_series(rules, scale), often),
        Group(name="mm2slo-events", interval=often, rules=short_windows(scale)),
        Group(name="mm2slo-steps", interval=seldom, rules=of_hours),
        Group(name="mm2slo-days", interval=seldom, rules=tuple(chains(_DAYS, scale))),
        Group(
            name="mm2slo-window",
            interval=seldom,
            rules=budgets({rule.window for rule in rules}, scale),
        ),
    )


def _objective_groups(rules: Sequence[RecordingRule], interval: float) -> Iterator[Group]:
    """Targets do not change between evaluations, so any group may read another's."""
    for number, start in enumerate(range(0, len(rules), _MOST_RULES), 1):
        yield Group(
            name="mm2slo-objectives" + f"-{number}" * (number > 1),
            interval=interval,
            rules=tuple(rules[start : start + _MOST_RULES]),
        )
