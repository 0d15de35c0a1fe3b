"""The alerts about objectives: budgets that burn, are spent, or cannot be judged.

They read recorded series only. One alert per pair of windows, so that a message names the windows
and a faster pair can silence a slower one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.burn.budget import coverage_low, exhausted
from mm2slo_alerts.burn.pairs import ALERTS, burning, notices
from mm2slo_alerts.model import PRODUCTION, Group, Links, Scale
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_core.objectives import BURN_PAIRS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives import BurnPair

__all__ = ["ALERTS", "groups", "notices"]


def groups(
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    links: Links | None = None,
    scale: Scale = PRODUCTION,
    pairs: Sequence[BurnPair] = BURN_PAIRS,
) -> tuple[Group, ...]:
    """One group, the fastest pair first; *thresholds* are those of production."""
    limits, to = thresholds.scaled(scale), links or Links()
    return (
        Group(
            name="mm2slo-burn",
            interval=limits.interval,
            rules=(
                *(burning(pair, to, scale) for pair in pairs),
                exhausted(limits, to, scale),
                coverage_low(limits, to, scale),
            ),
        ),
    )
