"""Alerts about objectives: burning and exhausted error budgets, low coverage.

They read recorded series. The label `window` distinguishes the pairs of windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.burn.budget_alerts import coverage_low, exhausted
from mm2slo_alerts.burn.pair_alerts import ALERT, burning, notices
from mm2slo_alerts.rule_model import PRODUCTION, Group, Links, Scale
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_core.objectives import WINDOW_PAIRS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives import WindowPair

__all__ = ["ALERT", "groups", "notices"]


def groups(
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    links: Links | None = None,
    scale: Scale = PRODUCTION,
    pairs: Sequence[WindowPair] = WINDOW_PAIRS,
) -> tuple[Group, ...]:
    """Return one group, the fastest pair first; *thresholds* are not scaled yet."""
    limits, to = thresholds.scaled(scale), links or Links()
    return (
        Group(
            name="mm2slo-burn",
            interval=limits.interval,
            rules=(
                *(burning(pair, limits, to, scale) for pair in pairs),
                exhausted(limits, to, scale),
                coverage_low(limits, to, scale),
            ),
        ),
    )
