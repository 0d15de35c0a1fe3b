"""Causes outside of a flow: a cluster does not answer, or refuses what is asked."""

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

_ASKS: Final = matching("stage", "topics|end_offsets|start_offsets")
"""Stages that succeed only when a broker has answered: all others may rest, or only listen."""
_NO_ANSWER: Final = matching("reason", "timeout|unreachable")
"""A refusal is an answer."""
WITHIN: Final = "within"
"""How far back a rule of MM2ClusterRecentlyUnreachable looks; a scaled one keeps these words."""
STANDS: Final = duration(DEFAULT_THRESHOLDS.recently_stands)
LASTS: Final = duration(DEFAULT_THRESHOLDS.recently_lasts)


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    """The alerts of clusters."""
    return (
        _unreachable(limits),
        _recently(limits, limits.recently_stands, STANDS),
        _recently(limits, limits.recently_lasts, LASTS),
        _failing(limits),
    )


def _silent(limits: Thresholds, after: float) -> str:
    """Failures to ask clusters that no replica has had an answer from for *after* seconds.

    Failures are asked for so that an exporter at rest says nothing; they also tell of a cluster
    that has not answered since the exporter's start. They must be exposed now (`and`): an exporter
    that died has no answers either.
    """
    errors = EXPORTER_COLLECT_ERRORS_TOTAL
    failed = over("increase", errors, limits.unreachable_errors, _ASKS, _NO_ANSWER)
    # An answer that a failed scrape hides for longer than *after* would be too old anyway.
    answered = over("max_over_time", EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, after, _ASKS)
    return (
        f"{failed} > 0\n  and\n  {select(errors)}\n"
        f"  unless {on(('cluster',), failed, answered)}\n"
        f"  {answered} > time() - {number(after)}"
    )


def _by_role(limits: Thresholds, clusters: str) -> str:
    """*clusters* once with the label `source`, and once with `target`, where flows have them so.

    Inhibitions compare labels by name, and a flow knows its clusters as source and target.
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
        expr=_by_role(limits, f"(\n  {_silent(limits, limits.unreachable_after)}\n)"),
        hold=limits.unreachable_hold,
        keep=limits.bridge,
        of_flow=False,
        summary="Cluster {{ $labels.cluster }} does not answer.",
        description=(
            "No replica of the exporter has had an answer for "
            f"{duration(limits.unreachable_after + limits.unreachable_hold)} or more."
        ),
        impact=(
            "Flows that start or end at {{ $labels.cluster }} are most likely at a standstill, and "
            "cannot be measured."
        ),
        first_step=(
            "From the exporter's host, run kafka-broker-api-versions.sh --bootstrap-server with "
            "the brokers of {{ $labels.cluster }}; then look at the brokers themselves."
        ),
    )


def _recently(limits: Thresholds, lasts: float, within: str) -> Cause:
    """Looks back instead of keeping an alert alive, so that it outlives Prometheus's restart."""
    silent = _silent(limits, limits.recently_after)
    window = f"[{duration(lasts)}:{duration(limits.recently_step)}]"
    return Cause(
        name="MM2ClusterRecentlyUnreachable",
        severity=NONE,
        expr=_by_role(limits, f"count_over_time((\n  {silent}\n){window})"),
        of_flow=False,
        labels={WITHIN: within},
        summary="Cluster {{ $labels.cluster }} does not answer, or did not until lately.",
        description=(
            "It keeps the alerts of the cluster's flows quiet until they had time to come back, "
            "and their budgets while what it caused is still in the windows."
        ),
        impact="None of its own: MM2ClusterUnreachable tells of the outage.",
        first_step='Query ALERTS{alertname="MM2ClusterUnreachable"}.',
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
        expr=f"{failed} >= {number(limits.failing_least)}",
        hold=limits.failing_hold,
        of_flow=False,
        summary="The exporter cannot do {{ $labels.stage }} on cluster {{ $labels.cluster }}.",
        description=(
            f"Failures in the last {duration(limits.failing_window)}: "
            '{{ $value | printf "%.0f" }}, of the kind {{ $labels.reason }}.'
        ),
        impact=(
            "Figures of the cluster's flows are missing or old, and count as unknown in their "
            "objectives."
        ),
        first_step=(
            "Read the exporter's log for {{ $labels.stage }}; where the reason is authorization, "
            "compare kafka-acls.sh --list with the rights the documentation asks for."
        ),
    )
