"""Alerts about exhausted error budgets and low coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.burn_annotations import coverage_annotations, exhausted_annotations
from mm2slo_alerts.burn.series_expressions import ON, long, with_owner
from mm2slo_alerts.rule_model import AlertRule
from mm2slo_core.catalogue import BAD_SUM, BUDGET_REMAINING, COVERAGE, WINDOW
from mm2slo_core.objectives import WINDOW_PAIRS, Severity
from mm2slo_core.promql import number

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Links, Scale
    from mm2slo_alerts.thresholds import Thresholds

_TICKET: Final = {"severity": Severity.TICKET.value}
_MIN_BAD: Final = max(pair.min_bad for pair in WINDOW_PAIRS)
"""The first bad event of a new flow already exceeds its budget and must not alert."""


def exhausted(limits: Thresholds, links: Links, scale: Scale) -> AlertRule:
    """Fires when no error budget remains and events still go bad."""
    name = "MM2ErrorBudgetExhausted"
    left, bad = long(BUDGET_REMAINING, scale), long(BAD_SUM[WINDOW], scale)
    return AlertRule(
        alert=name,
        expr=with_owner(f"  1 - {left} >= 1\n  and {ON} {bad} >= {_MIN_BAD}"),
        hold=limits.exhausted_hold,
        labels=_TICKET,
        annotations={**exhausted_annotations(scale), **links.annotations(name)},
    )


def coverage_low(limits: Thresholds, links: Links, scale: Scale) -> AlertRule:
    """Fires when too few events of the last hour could be measured."""
    name = "MM2SLOCoverageLow"
    known = long(COVERAGE["1h"], scale)
    return AlertRule(
        alert=name,
        expr=with_owner(f"  {known} < {number(limits.coverage_min)}"),
        hold=limits.coverage_hold,
        labels=_TICKET,
        annotations={**coverage_annotations(scale), **links.annotations(name)},
    )
