"""What is promised of a flow, the windows that watch it, and what is left of its budget."""

from mm2slo_core.objectives.objective import (
    DAY,
    DEFAULT_WINDOW,
    Objective,
    ObjectiveRule,
    Severity,
    resolve,
)
from mm2slo_core.objectives.pairs import BURN_PAIRS, BurnPair

__all__ = [
    "BURN_PAIRS",
    "DAY",
    "DEFAULT_WINDOW",
    "BurnPair",
    "Objective",
    "ObjectiveRule",
    "Severity",
    "resolve",
]
