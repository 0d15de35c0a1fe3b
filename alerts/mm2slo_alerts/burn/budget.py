"""Alerts about a budget that is spent, and about figures that too little is known for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.reading import ON, long, told_to
from mm2slo_alerts.burn.texts import coverage_texts, exhausted_texts
from mm2slo_alerts.model import AlertRule
from mm2slo_core.catalogue import BAD_SUM, BUDGET_REMAINING, COVERAGE, WINDOW
from mm2slo_core.objectives import BURN_PAIRS, Severity
from mm2slo_core.promql import number

if TYPE_CHECKING:
    from mm2slo_alerts.model import Links, Scale
    from mm2slo_alerts.thresholds import Thresholds

_TICKET: Final = {"severity": Severity.TICKET.value}
_MIN_BAD: Final = max(pair.min_bad for pair in BURN_PAIRS)
"""As for the pairs: a new flow's first bad event is more than its budget, and no news."""


def exhausted(limits: Thresholds, links: Links, scale: Scale) -> AlertRule:
    """More was spent within the objective's window than was promised."""
    name = "MM2ErrorBudgetExhausted"
    left, bad = long(BUDGET_REMAINING, scale), long(BAD_SUM[WINDOW], scale)
    return AlertRule(
        alert=name,
        expr=told_to(f"  1 - {left} >= 1\n  and {ON} {bad} >= {_MIN_BAD}"),
        hold=limits.exhausted_hold,
        labels=_TICKET,
        annotations={**exhausted_texts(scale), **links.annotations(name)},
    )


def coverage_low(limits: Thresholds, links: Links, scale: Scale) -> AlertRule:
    """Too much of the last hour is unknown, or was never scraped."""
    name = "MM2SLOCoverageLow"
    known = long(COVERAGE["1h"], scale)
    return AlertRule(
        alert=name,
        expr=told_to(f"  {known} < {number(limits.coverage_least)}"),
        hold=limits.coverage_hold,
        labels=_TICKET,
        annotations={**coverage_texts(scale), **links.annotations(name)},
    )
