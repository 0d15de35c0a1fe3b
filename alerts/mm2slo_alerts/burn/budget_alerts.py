"""Alerts about exhausted error budgets and low coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.burn_annotations import coverage_annotations, exhausted_annotations
from mm2slo_alerts.burn.series_expressions import ON, long, with_owner
from mm2slo_alerts.causes.cause_expressions import latest
from mm2slo_alerts.rule_model import AlertRule, Subject
from mm2slo_core.catalogue import (
    BAD_SUM,
    BUDGET_REMAINING,
    COVERAGE,
    EVENTS_STEP,
    FLOW_OBSERVED_TIMESTAMP_SECONDS,
    UNKNOWN_STEP,
    WINDOW,
)
from mm2slo_core.catalogue.recorded_series import FLOW_UNREACHABLE
from mm2slo_core.objectives import WINDOW_PAIRS, Severity
from mm2slo_core.promql import number, over

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
        annotations={**exhausted_annotations(), **links.annotations(name, Subject.OBJECTIVE)},
    )


def coverage_low(limits: Thresholds, links: Links, scale: Scale) -> AlertRule:
    """Fires when too few events of the last hour can be measured, and of the last step as well.

    A flow that is not observed at all has its own alert, and so has an unreachable cluster.
    """
    name = "MM2SLOCoverageLow"
    known, observed = long(COVERAGE["1h"], scale), latest(FLOW_OBSERVED_TIMESTAMP_SECONDS, limits)
    away = over("present_over_time", FLOW_UNREACHABLE, limits.outage_memory)
    events, unknown = long(EVENTS_STEP, scale), long(UNKNOWN_STEP, scale)
    return AlertRule(
        alert=name,
        expr=with_owner(
            f"  {known} < {number(limits.coverage_min)}\n"
            f"  unless {ON} {events} * {number(1 - limits.coverage_min)} "
            f">= ({unknown} or 0 * {events}) * {number(limits.coverage_min)}\n"
            f"  and on (flow) {observed} > time() - {number(limits.observed_age)}\n"
            f"  unless on (flow) {away}"
        ),
        hold=limits.coverage_hold,
        labels=_TICKET,
        annotations={**coverage_annotations(), **links.annotations(name, Subject.OBJECTIVE)},
    )
