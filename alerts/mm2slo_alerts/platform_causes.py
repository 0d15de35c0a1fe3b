"""Causes outside of a flow: clusters that do not answer, and the monitoring itself.

Monitoring is the exporter, Prometheus rules, messages and log shipping.
"""

from typing import Final

from mm2slo_alerts.alert_rules import AlertSubject, RecordingRule
from mm2slo_alerts.alert_thresholds import Thresholds
from mm2slo_alerts.cause_model import COUNT, NONE, PAGE, TICKET, Cause, Outages
from mm2slo_core.catalogue.flow_metrics import FLOW_INFO
from mm2slo_core.catalogue.prometheus_series import (
    CLUSTER_UNREACHABLE,
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
    UP,
    WATCHDOG,
)
from mm2slo_core.catalogue.promql import (
    Vector,
    aggregate,
    duration,
    equal,
    matching,
    number,
    on,
    over,
    select,
)
from mm2slo_core.catalogue.service_metrics import (
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_LOOP_FAILURES_TOTAL,
    LOGSHIP_SEND_LAG_SECONDS,
)

_REQUEST_STAGES: Final = matching("stage", "topics|end_offsets|start_offsets")
"""Stages that succeed only if a broker answers; others may be idle or only consume."""

_NO_ANSWER: Final = matching("reason", "timeout|unreachable")
"""Other errors are answers."""


def build_cluster_causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (
        _unreachable(limits),
        _failing(limits),
    )


def build_cluster_recordings(limits: Thresholds) -> tuple[RecordingRule, ...]:
    """Return the series that MM2ClusterUnreachable and rules about flows read."""
    after, errors = limits.unreachable_after, EXPORTER_COLLECT_ERRORS_TOTAL
    silent, away = (
        str(_not_answering(_answered_within(seconds), limits.unreachable_errors))
        for seconds in (after, after + limits.unreachable_hold)
    )
    return (
        RecordingRule(
            record=CLUSTER_UNREACHABLE.name,
            expr=_outages(limits).expression(
                starts=_by_role(limits, away),
                goes_on=f"{silent}\nand on (cluster, source, target) {_roles(limits)}",
                # An exporter that is scraped knows.
                ended=str(select(errors)),
                scraped=str(over("present_over_time", errors, limits.outage_memory)),
            ),
        ),
    )


def _outages(limits: Thresholds) -> Outages:
    after, hold = limits.unreachable_after, limits.unreachable_hold
    return Outages(CLUSTER_UNREACHABLE, "cluster", after, hold, limits.interval)


def _not_answering(answered: str, failures: float) -> Vector:
    """Clusters that failed requests in *failures* seconds and have not *answered* any replica.

    Requiring failures excludes an idle exporter and includes a cluster that has not answered since
    the exporter started. The counter must be scraped now (`and`), which excludes a dead exporter.
    """
    errors = EXPORTER_COLLECT_ERRORS_TOTAL
    failed = over("increase", errors, failures, _REQUEST_STAGES, _NO_ANSWER)
    silent = f"{failed} > 0 and {select(errors)} unless {on(('cluster',), failed)} {answered}"
    return aggregate("group", Vector(silent, failed.labels), ("cluster",))


def _answered_within(seconds: float) -> str:
    # An answer hidden by failed scrapes for longer than *seconds* would be too old anyway.
    success = EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS
    last = over("max_over_time", success, seconds, _REQUEST_STAGES)
    return f"{last} > time() - {number(seconds)}"


def _answered_before_scrape(seconds: float) -> str:
    # Scrapes may be further apart than *seconds*: an answer is as old as it was when scraped.
    last = select(EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, _REQUEST_STAGES)
    return f"timestamp({last}) - {last} < {number(seconds)}"


def _by_role(limits: Thresholds, clusters: str) -> str:
    """Add the label `source` or `target`, one alert per role of a cluster in any flow."""
    return f"{_roles(limits)}\n* on (cluster) group_left ()\n(\n{clusters}\n)"


def _roles(limits: Thresholds) -> str:
    """Inhibition compares labels by name, and alerts of flows have `source` and `target`."""
    known = over("present_over_time", FLOW_INFO, limits.bridge)
    roles = "\n  or\n".join(
        f'  label_replace({aggregate("group", known, (role,))}, "cluster", "$1", "{role}", "(.*)")'
        for role in ("source", "target")
    )
    return f"(\n{roles}\n)"


def _unreachable(limits: Thresholds) -> Cause:
    """The value is the time since the incident started, or below 1 a share of the last time.

    The share is that of several outages which are too short to alert by themselves.
    """
    outages = _outages(limits)
    often = _not_answering(_answered_before_scrape(limits.flap_after), limits.flap_errors)
    polled = aggregate("group", select(EXPORTER_COLLECT_ERRORS_TOTAL), ("cluster",))
    window = f"[{duration(limits.flap_window)}:{duration(limits.flap_step)}]"
    unanswered = f"({often} or {polled} * 0){window}"
    steps = number(limits.flap_window / limits.flap_step)
    return Cause(
        name="MM2ClusterUnreachable",
        severity=PAGE,
        expr=f"time() - {select(CLUSTER_UNREACHABLE)}\nor\n"
        + _by_role(
            limits,
            f"  sum_over_time({unanswered}) / {steps} >= {number(limits.flap_share)}\n"
            f"  and\n  changes({unanswered}) >= {number(limits.flap_changes)}",
        )
        + "\nunless on (cluster) "
        + str(over("present_over_time", CLUSTER_UNREACHABLE, limits.flap_window)),
        keep=outages.keep,
        subject=AlertSubject.FLEET,
        summary=(
            "Cluster {{ $labels.cluster }} {{ if lt $value 1.0 }}was unreachable for "
            "{{ $value | humanizePercentage }} of the last "
            f"{duration(limits.flap_window)}{{{{ else }}}}"
            f"{outages.times('does not answer', 'was unreachable')}{{{{ end }}}}."
        ),
        lasted=f"{{{{ if ge $value 1.0 }}}}{outages.lasted()}{{{{ end }}}}",
        impact=(
            "Flows from and to {{ $labels.cluster }} have most likely stopped and cannot be "
            "measured."
        ),
        action=(
            "From the exporter's host, run kafka-broker-api-versions.sh --bootstrap-server with "
            "the brokers of {{ $labels.cluster }}, then check the brokers themselves."
        ),
    )


def _failing(limits: Thresholds) -> Cause:
    failed = aggregate(
        "max",
        over("increase", EXPORTER_COLLECT_ERRORS_TOTAL, limits.failing_window),
        ("cluster", "stage", "reason"),
    )
    return Cause(
        name="MM2CollectionFailing",
        severity=TICKET,
        expr=f"{failed} >= {number(limits.failing_min)}",
        hold=limits.failing_hold,
        subject=AlertSubject.FLEET,
        summary=(
            "{{ $labels.stage }} collection is failing on cluster {{ $labels.cluster }} "
            f"({{{{ $labels.reason }}}}): {COUNT} failures in the last "
            f"{duration(limits.failing_window)}."
        ),
        impact=(
            "Metrics of the cluster's flows are missing or stale, and count as unknown in their "
            "objectives."
        ),
        action=(
            "Read the exporter's log for {{ $labels.stage }}; if the reason is authorization, "
            "compare kafka-acls.sh --list with the documented permissions."
        ),
    )


_OURS: Final = matching("rule_group", ".*mm2slo.*")

LOGSHIP_JOB: Final = "mm2slo-logship"
"""The job name in the shipped scrape configuration."""


def build_platform_causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (
        _exporter(limits),
        _loops(limits),
        _rules(limits),
        _slack(limits),
        _logs(limits),
        _watchdog(),
    )


def _exporter(limits: Thresholds) -> Cause:
    # Without a target Prometheus has no series `up`, and a comparison of nothing is nothing.
    up = select(UP, equal("job", limits.exporter_job))
    return Cause(
        name="MM2ExporterDown",
        severity=PAGE,
        expr=f"{aggregate('max', up, ('job',))} == 0\nor\nabsent({up})",
        hold=limits.exporter_hold,
        keep=limits.exporter_hold,
        subject=AlertSubject.FLEET,
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
        subject=AlertSubject.FLEET,
        summary=(
            "Loop {{ $labels.loop }} of the exporter failed unexpectedly in the last "
            f"{duration(limits.loops_window)}: {COUNT}."
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
        subject=AlertSubject.FLEET,
        summary=(
            "Prometheus failed or missed evaluations of rule group {{ $labels.rule_group }} in the "
            f"last {duration(limits.rules_window)}: {COUNT}."
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
        subject=AlertSubject.FLEET,
        summary=(
            "Alertmanager failed to deliver messages to Slack in the last "
            f"{duration(limits.delivery_window)}: {COUNT}."
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
        subject=AlertSubject.FLEET,
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
        name=WATCHDOG,
        severity=NONE,
        expr="vector(1)",
        subject=AlertSubject.FLEET,
        summary="Alerts are evaluated and delivered; this alert always fires.",
        impact="None while it fires; when it stops arriving, no alert is delivered.",
        action=(
            "Route it to a service that raises an alarm when it stops arriving, and then check "
            "Prometheus and Alertmanager."
        ),
    )
