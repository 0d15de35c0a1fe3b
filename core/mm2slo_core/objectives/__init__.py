"""Objectives of flows, their window pairs, error budgets and exclusions."""

from mm2slo_core.objectives.objective import (
    DAY,
    DEFAULT_WINDOW,
    Objective,
    ObjectiveRule,
    Severity,
    resolve,
)
from mm2slo_core.objectives.window_pairs import WINDOW_PAIRS, WindowPair

__all__ = [
    "DAY",
    "DEFAULT_WINDOW",
    "WINDOW_PAIRS",
    "Objective",
    "ObjectiveRule",
    "Severity",
    "WindowPair",
    "resolve",
]
