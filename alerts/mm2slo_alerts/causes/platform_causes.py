"""Causes in the monitoring itself: exporter, Prometheus rules, messages, log shipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause import NONE, PAGE, TICKET, Cause
from mm2slo_alerts.rule_model import Subject
from mm2slo_core.catalogue import EXPORTER_LOOP_FAILURES_TOTAL
from mm2slo_core.catalogue.external_metrics import (
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
    UP,
)
from mm2slo_core.catalogue.logship_metrics import LOGSHIP_SEND_LAG_SECONDS
from mm2slo_core.promql import aggregate, duration, equal, matching, number, over, select

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

_OURS: Final = matching("rule_group", ".*mm2slo.*")
LOGSHIP_JOB: Final = "mm2slo-logship"
"""The job name in the shipped scrape configuration."""


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (
        _exporter(limits),
        _loops(limits),
        _rules(limits),
        _slack(limits),
        _logs(limits),
        _watchdog(),
    )


def _exporter(limits: Thresholds) -> Cause:
    up = select(UP, equal("job", limits.exporter_job))
    return Cause(
        name="MM2ExporterDown",
        severity=PAGE,
        expr=f"{aggregate('max', up, ('job',))} == 0\nor\nabsent({up})",
        hold=limits.exporter_hold,
        keep=limits.exporter_hold,
        subject=Subject.FLEET,
        summary="No exporter of job {{ $labels.job }} can be scraped.",
        impact="No flow is measured, so a stop or a loss would go unnoticed.",
        action=(
            "Check that the exporter is running, read its log, and open /targets in Prometheus for "
            "the scrape error."
        ),
    )


def _loops(limits: Thresholds) -> Cause:
    failed = aggregate(
        "sum", over("increase", EXPORTER_LOOP_FAILURES_TOTAL, limits.loops_window), ("loop",)
    )
    return Cause(
        name="MM2ExporterLoopFailing",
        severity=TICKET,
        expr=f"{failed} > 0",
        subject=Subject.FLEET,
        summary=(
            "Loop {{ $labels.loop }} of the exporter failed unexpectedly in the last "
            f'{duration(limits.loops_window)}: {{{{ $value | printf "%.0f" }}}}.'
        ),
        impact="What the loop reads or evaluates is stale until it succeeds after a restart.",
        action="Read the exporter's log for the traceback of the loop, and report the bug with it.",
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
        subject=Subject.FLEET,
        summary=(
            "Prometheus failed or missed evaluations of rule group {{ $labels.rule_group }} in the "
            f'last {duration(limits.rules_window)}: {{{{ $value | printf "%.0f" }}}}.'
        ),
        impact="Alerts of this group may not fire, and error budgets may be wrong.",
        action=(
            "Open /rules in Prometheus for the error of each failing rule and the evaluation time "
            "of each group."
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
        subject=Subject.FLEET,
        summary=(
            "Alertmanager failed to deliver messages to Slack in the last "
            f'{duration(limits.delivery_window)}: {{{{ $value | printf "%.0f" }}}}.'
        ),
        impact="Pages and tickets do not reach on-call.",
        action=(
            "Read Alertmanager's log for Notify attempt failed; if the webhook answers with 403 or "
            "404, write a new one into its webhook_url_file."
        ),
    )


def _logs(limits: Thresholds) -> Cause:
    return Cause(
        name="MM2LogsNotShipped",
        severity=TICKET,
        expr=(
            f"{select(LOGSHIP_SEND_LAG_SECONDS)} > {number(limits.shipping_lag)}\n"
            f"or\n{select(UP, equal('job', LOGSHIP_JOB))} == 0"
        ),
        hold=limits.shipping_hold,
        subject=Subject.FLEET,
        summary=(
            "mm2slo logship at {{ $labels.instance }} {{ if $value }}has had no events accepted "
            "for {{ $value | humanizeDuration }}{{ else }}cannot be scraped{{ end }}."
        ),
        impact="Logs of MirrorMaker 2 are missing in Splunk, and are lost if files are deleted.",
        action=(
            "Check that mm2slo logship is running on that host, run mm2slo logship check there, "
            "and read its log for the response of Splunk."
        ),
    )


def _watchdog() -> Cause:
    return Cause(
        name="MM2Watchdog",
        severity=NONE,
        expr="vector(1)",
        subject=Subject.FLEET,
        summary="Alerts are evaluated and delivered; this alert always fires.",
        impact="None while it fires; when it stops arriving, no alert is delivered.",
        action=(
            "Route it to a service that raises an alarm when it stops arriving, and then check "
            "Prometheus and Alertmanager."
        ),
    )
