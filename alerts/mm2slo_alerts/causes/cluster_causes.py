"""Causes outside of a flow: a cluster does not answer, or rejects requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause import PAGE, TICKET, Cause
from mm2slo_alerts.causes.cause_expressions import Outages
from mm2slo_alerts.rule_model import RecordingRule, Subject
from mm2slo_core.catalogue import (
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    FLOW_INFO,
)
from mm2slo_core.catalogue.recorded_series import CLUSTER_UNREACHABLE
from mm2slo_core.promql import Vector, aggregate, duration, matching, number, on, over, select

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

_REQUEST_STAGES: Final = matching("stage", "topics|end_offsets|start_offsets")
"""Stages that succeed only if a broker answers; others may be idle or only consume."""
_NO_ANSWER: Final = matching("reason", "timeout|unreachable")
"""Other errors are answers."""


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (
        _unreachable(limits),
        _failing(limits),
    )


def recorded(limits: Thresholds) -> tuple[RecordingRule, ...]:
    """Return the series that MM2ClusterUnreachable and rules about flows read."""
    after, errors = limits.unreachable_after, EXPORTER_COLLECT_ERRORS_TOTAL
    silent, away = (
        str(aggregate("group", _not_answering(seconds, limits.unreachable_errors), ("cluster",)))
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


def _not_answering(after: float, failures: float) -> Vector:
    """Clusters that answered no replica for *after* seconds, and failed requests in *failures*.

    Requiring failures excludes an idle exporter and includes a cluster that has not answered since
    the exporter started. The counter must be scraped now (`and`), which excludes a dead exporter.
    """
    errors = EXPORTER_COLLECT_ERRORS_TOTAL
    failed = over("increase", errors, failures, _REQUEST_STAGES, _NO_ANSWER)
    # An answer hidden by failed scrapes for longer than *after* would be too old anyway.
    answered = over(
        "max_over_time", EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, after, _REQUEST_STAGES
    )
    return Vector(
        f"{failed} > 0 and {select(errors)} "
        f"unless {on(('cluster',), failed, answered)} {answered} > time() - {number(after)}",
        failed.labels,
    )


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
    often = aggregate("group", _not_answering(limits.flap_after, limits.flap_errors), ("cluster",))
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
        subject=Subject.FLEET,
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
        subject=Subject.FLEET,
        summary=(
            "{{ $labels.stage }} collection is failing on cluster {{ $labels.cluster }} "
            '({{ $labels.reason }}): {{ $value | printf "%.0f" }} failures in the last '
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
