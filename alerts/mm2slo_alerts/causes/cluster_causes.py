"""Causes outside of a flow: a cluster does not answer, or rejects requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause import NONE, PAGE, TICKET, Cause
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.catalogue import (
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    FLOW_INFO,
)
from mm2slo_core.promql import aggregate, duration, matching, number, on, over, select

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

_REQUEST_STAGES: Final = matching("stage", "topics|end_offsets|start_offsets")
"""Stages that succeed only if a broker answers; others may be idle or only consume."""
_NO_ANSWER: Final = matching("reason", "timeout|unreachable")
"""Other errors are answers."""
WITHIN: Final = "within"
"""Label: how far back MM2ClusterRecentlyUnreachable looks, in production's time."""
RECOVERY: Final = duration(DEFAULT_THRESHOLDS.outage_recovery)
IN_WINDOWS: Final = duration(DEFAULT_THRESHOLDS.outage_in_windows)


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (
        _unreachable(limits),
        _recently(limits, limits.outage_recovery, RECOVERY),
        _recently(limits, limits.outage_in_windows, IN_WINDOWS),
        _failing(limits),
    )


def _not_answering(limits: Thresholds, after: float) -> str:
    """Failed requests to clusters that have not answered any replica for *after* seconds.

    Requiring failures excludes an idle exporter and includes a cluster that has not answered since
    the exporter started. The counter must be scraped now (`and`), which excludes a dead exporter.
    """
    errors = EXPORTER_COLLECT_ERRORS_TOTAL
    failed = over("increase", errors, limits.unreachable_errors, _REQUEST_STAGES, _NO_ANSWER)
    # An answer hidden by failed scrapes for longer than *after* would be too old anyway.
    answered = over(
        "max_over_time", EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, after, _REQUEST_STAGES
    )
    return (
        f"{failed} > 0\n  and\n  {select(errors)}\n"
        f"  unless {on(('cluster',), failed, answered)}\n"
        f"  {answered} > time() - {number(after)}"
    )


def _by_role(limits: Thresholds, clusters: str) -> str:
    """Add the label `source` or `target`, one alert per role of a cluster in any flow.

    Inhibition compares labels by name, and alerts of flows have `source` and `target`.
    """
    known = over("present_over_time", FLOW_INFO, limits.bridge)
    roles = "\n  or\n".join(
        f'  label_replace({aggregate("group", known, (role,))}, "cluster", "$1", "{role}", "(.*)")'
        for role in ("source", "target")
    )
    return f"(\n{roles}\n)\nand on (cluster)\n{clusters}"


def _unreachable(limits: Thresholds) -> Cause:
    return Cause(
        name="MM2ClusterUnreachable",
        severity=PAGE,
        expr=_by_role(limits, f"(\n  {_not_answering(limits, limits.unreachable_after)}\n)"),
        hold=limits.unreachable_hold,
        keep=limits.bridge,
        of_flow=False,
        summary="Cluster {{ $labels.cluster }} does not answer.",
        impact=(
            "Flows from and to {{ $labels.cluster }} have most likely stopped and cannot be "
            "measured."
        ),
        action=(
            "From the exporter's host, run kafka-broker-api-versions.sh --bootstrap-server with "
            "the brokers of {{ $labels.cluster }}, then check the brokers themselves."
        ),
    )


def _recently(limits: Thresholds, lasts: float, within: str) -> Cause:
    """Looks back instead of using `keep_firing_for`, which a restart of Prometheus resets."""
    silent = _not_answering(limits, limits.recently_unreachable_after)
    window = f"[{duration(lasts)}:{duration(limits.recently_unreachable_step)}]"
    return Cause(
        name="MM2ClusterRecentlyUnreachable",
        severity=NONE,
        expr=_by_role(limits, f"count_over_time((\n  {silent}\n){window})"),
        of_flow=False,
        labels={WITHIN: within},
        summary="Cluster {{ $labels.cluster }} does not answer, or did not until recently.",
        impact=(
            "None: MM2ClusterUnreachable reports the outage, and this alert inhibits its effects."
        ),
        action='Query ALERTS{alertname="MM2ClusterUnreachable"}.',
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
        of_flow=False,
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
