"""Causes in what watches: the exporter, Prometheus's rules, Alertmanager's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause import NONE, PAGE, TICKET, Cause
from mm2slo_core.catalogue.external import (
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
    UP,
)
from mm2slo_core.promql import aggregate, duration, equal, matching, number, over, select

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

_OURS: Final = matching("rule_group", ".*mm2slo.*")


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    """The alerts about the alerting itself."""
    return (_exporter(limits), _rules(limits), _slack(limits), _watchdog())


def _exporter(limits: Thresholds) -> Cause:
    up = select(UP, equal("job", limits.exporter_job))
    return Cause(
        name="MM2ExporterDown",
        severity=PAGE,
        expr=f"{aggregate('max', up, ('job',))} == 0\nor\nabsent({up})",
        hold=limits.exporter_hold,
        of_flow=False,
        summary="No exporter of job {{ $labels.job }} can be scraped.",
        description="Every replica is down, or none is among Prometheus's targets.",
        impact="No flow is measured: a stop or a loss would go unseen.",
        first_step=(
            "See whether the exporter's process runs and what its log last said, and open "
            "/targets in Prometheus for the error of the scrape."
        ),
    )


def _rules(limits: Thresholds) -> Cause:
    failed, missed = (
        aggregate("sum", over("increase", metric, limits.rules_window, _OURS), ("rule_group",))
        for metric in (RULE_FAILURES, ITERATIONS_MISSED)
    )
    return Cause(
        name="MM2RuleEvaluationFailing",
        severity=TICKET,
        expr=f"{failed} > 0\nor\n{missed} >= {number(limits.rules_missed)}",
        hold=limits.rules_hold,
        of_flow=False,
        summary="Prometheus fails to evaluate rules of {{ $labels.rule_group }}.",
        description=(
            "Evaluations that failed or were left out in the last "
            f"{duration(limits.rules_window)}: "
            '{{ $value | printf "%.0f" }}.'
        ),
        impact="Alerts of this group may not fire, and budgets may be wrong.",
        first_step=(
            "Open /rules in Prometheus: a rule in red tells its error, Evaluation Time which group "
            "is slow."
        ),
    )


def _slack(limits: Thresholds) -> Cause:
    failed = aggregate(
        "sum",
        over(
            "increase", NOTIFICATIONS_FAILED, limits.delivery_window, equal("integration", "slack")
        ),
        ("integration",),
    )
    return Cause(
        name="MM2SlackDeliveryFailing",
        severity=TICKET,
        expr=f"{failed} > 0",
        of_flow=False,
        summary="Alertmanager cannot deliver messages to Slack.",
        description=(
            f"Messages lost in the last {duration(limits.delivery_window)}: "
            '{{ $value | printf "%.0f" }}.'
        ),
        impact="Pages and tickets do not reach the people they are for.",
        first_step=(
            "Read Alertmanager's log for Notify attempt failed; a webhook that was revoked answers "
            "with 403 or 404: write a new one into its webhook_url_file."
        ),
    )


def _watchdog() -> Cause:
    return Cause(
        name="MM2Watchdog",
        severity=NONE,
        expr="vector(1)",
        of_flow=False,
        summary="Alerts are evaluated and delivered.",
        description=(
            "This alert always fires. Route it to a service that raises the alarm when it stops to "
            "arrive."
        ),
        impact="None while it fires; when it stops, nobody is told of anything.",
        first_step="When it is missing, see whether Prometheus and Alertmanager run.",
    )
