"""Causes that affect a whole flow: stopped, not measured, connectors failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.causes.cause import PAGE, TICKET, Cause
from mm2slo_alerts.causes.cause_expressions import by_flow, flow_stopped, latest, unless_maintained
from mm2slo_core.catalogue import (
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CONNECTOR_STATE,
    FLOW_INFO,
    FLOW_OBSERVED_TIMESTAMP_SECONDS,
    FLOW_STATE,
    TASK_STATE,
)
from mm2slo_core.promql import duration, equal, number, on, over, quoted

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (
        _stopped(limits),
        _absent(limits),
        _connector(limits),
        _task(limits),
        _canaries_lost(limits),
        _affinity(limits),
    )


def _stopped(limits: Thresholds) -> Cause:
    """An unknown state does not end the alert: a restart of the exporter would page again."""
    name = "MM2FlowStopped"
    unknown = by_flow("max", latest(FLOW_STATE, limits, equal("state", "unknown")))
    fired = f'ALERTS{{alertname={quoted(name)}, alertstate="firing"}}'
    return Cause(
        name=name,
        severity=PAGE,
        expr=unless_maintained(
            f"(\n  {flow_stopped(limits)}\n  or\n  {unknown} == 1 and on (flow) {fired}\n)"
        ),
        hold=limits.stopped_hold,
        summary="Flow {{ $labels.flow }} has stopped.",
        impact=(
            "Consumers on {{ $labels.target }} read nothing new from {{ $labels.source }}, and a "
            "failover now would leave the backlog unreplicated."
        ),
        action=(
            "Check that MirrorMaker 2 is running and read its log; query "
            'mm2_connector_state{flow="{{ $labels.flow }}"} == 1 for a paused or failed connector.'
        ),
    )


def _absent(limits: Thresholds) -> Cause:
    """Not scraped, or scraped and no longer evaluated by any exporter."""
    known = by_flow("group", over("present_over_time", FLOW_INFO, limits.flow_lookback))
    observed = latest(FLOW_OBSERVED_TIMESTAMP_SECONDS, limits)
    return Cause(
        name="MM2FlowMetricsAbsent",
        severity=PAGE,
        expr=(
            f"{known}\nunless {on(('flow',), known, observed)}\n"
            f"{observed} > time() - {number(limits.observed_age)}"
        ),
        hold=limits.absent_hold,
        summary=(
            "Flow {{ $labels.flow }} has had no current metrics for "
            f"{duration(limits.absent_hold)} or more."
        ),
        impact=(
            "Whether records reach {{ $labels.target }} is unknown, and no other alert of this "
            "flow can fire."
        ),
        action=(
            f'Query up{{job="{limits.exporter_job}"}} and read the exporter\'s log; if the '
            "flow was removed on purpose, silence this alert for "
            f"{duration(limits.flow_lookback)}."
        ),
    )


def _connector(limits: Thresholds) -> Cause:
    failed = by_flow("max", latest(CONNECTOR_STATE, limits, equal("state", "failed")), "connector")
    return Cause(
        name="MM2ConnectorFailed",
        severity=PAGE,
        expr=unless_maintained(f"{failed} == 1"),
        hold=limits.connector_hold,
        summary="Connector {{ $labels.connector }} of flow {{ $labels.flow }} has failed.",
        impact=(
            "New topics, partitions and groups are not replicated, and the next rebalance may stop "
            "replication."
        ),
        action=(
            "Read MirrorMaker 2's log for the connector's exception, fix its cause, then restart "
            "the connector (POST /connectors/{{ $labels.connector }}/restart) or the process."
        ),
    )


def _task(limits: Thresholds) -> Cause:
    failed = by_flow(
        "max", latest(TASK_STATE, limits, equal("state", "failed")), "connector", "task"
    )
    return Cause(
        name="MM2TaskFailed",
        severity=TICKET,
        expr=unless_maintained(f"{failed} == 1"),
        hold=limits.task_hold,
        keep=limits.task_keep,
        summary=(
            "Task {{ $labels.task }} of {{ $labels.connector }} in flow {{ $labels.flow }} has "
            "failed."
        ),
        impact="The partitions of this task are not replicated; those of other tasks are.",
        action=(
            "Read MirrorMaker 2's log for the task's exception, fix its cause, then restart the "
            "task (POST /connectors/{{ $labels.connector }}/tasks/{{ $labels.task }}/restart) or "
            "the process."
        ),
    )


def _canaries_lost(limits: Thresholds) -> Cause:
    lost = by_flow("sum", over("increase", CANARY_LOST_TOTAL, limits.canary_lost_window))
    return Cause(
        name="MM2CanaryRecordsLost",
        severity=TICKET,
        expr=f"{lost} > 0",
        summary=(
            "Flow {{ $labels.flow }} has lost canary records in the last "
            f'{duration(limits.canary_lost_window)}: {{{{ $value | printf "%.0f" }}}}.'
        ),
        impact="User records may be missing on {{ $labels.target }} in the same way.",
        action=(
            "Compare both clusters for that time: mm2slo audit --config mm2slo.yaml "
            "--flow '{{ $labels.flow }}'."
        ),
    )


def _affinity(limits: Thresholds) -> Cause:
    moved = by_flow("sum", over("increase", CANARY_MOVED_TOTAL, limits.moved_window))
    return Cause(
        name="MM2AffinityBroken",
        severity=TICKET,
        expr=f"{moved} > 0",
        summary=(
            "Flow {{ $labels.flow }} replicated canaries into other partitions in the last "
            f'{duration(limits.moved_window)}: {{{{ $value | printf "%.0f" }}}}.'
        ),
        impact=(
            "Consumers on {{ $labels.target }} may read the records of one key out of order, or on "
            "two members of a group."
        ),
        action=(
            "Look for a transform (SMT) that changes keys or partitions, and for another producer "
            "on the target topic."
        ),
    )
