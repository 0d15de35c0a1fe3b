"""Causes that concern a flow as a whole: it stopped, it is not seen, its connectors failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.causes.cause import PAGE, TICKET, Cause
from mm2slo_alerts.causes.expressions import by_flow, flow_stopped, latest, unless_maintained
from mm2slo_core.catalogue import (
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CONNECTOR_STATE,
    FLOW_INFO,
    SLI_EVENTS_TOTAL,
    TASK_STATE,
)
from mm2slo_core.config.canary import CanaryCarrier
from mm2slo_core.config.flow import Engine
from mm2slo_core.promql import duration, equal, on, over, unequal

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    """The alerts of a flow as a whole, pages first."""
    return (
        _stopped(limits),
        _absent(limits),
        _connector(limits),
        _task(limits),
        _canaries_lost(limits),
        _affinity(limits),
    )


def _stopped(limits: Thresholds) -> Cause:
    return Cause(
        name="MM2FlowStopped",
        severity=PAGE,
        expr=unless_maintained(flow_stopped(limits)),
        hold=limits.stopped_hold,
        summary="Flow {{ $labels.flow }} has stopped.",
        description=(
            "Records or canaries wait on {{ $labels.source }}, both clusters answer, and nothing "
            "arrives on {{ $labels.target }}."
        ),
        impact=(
            "Consumers on {{ $labels.target }} read nothing new from {{ $labels.source }}, and a "
            "failover now would miss all that waits."
        ),
        first_step=(
            "See whether MirrorMaker 2 runs and what its log last said; query "
            'mm2_connector_state{flow="{{ $labels.flow }}"} == 1 for a paused or failed connector.'
        ),
    )


def _absent(limits: Thresholds) -> Cause:
    """A flow that no indicator is about, of another engine and without canaries, has no counters.

    It is there while its description is.
    """
    known = by_flow("group", over("present_over_time", FLOW_INFO, limits.flow_remembered))
    counted = over("present_over_time", SLI_EVENTS_TOTAL, limits.bridge)
    uncounted = over(
        "present_over_time",
        FLOW_INFO,
        limits.bridge,
        unequal("engine", Engine.MIRRORMAKER2),
        equal("canary", CanaryCarrier.OFF),
    )
    return Cause(
        name="MM2FlowMetricsAbsent",
        severity=PAGE,
        expr=(
            f"{known}\nunless {on(('flow',), known, counted, uncounted)} (\n"
            f"  {counted}\n  or\n  {uncounted}\n)"
        ),
        hold=limits.absent_hold,
        summary="Nothing measures flow {{ $labels.flow }} any more.",
        description=(
            f"The flow was published within the last {duration(limits.flow_remembered)}, and its "
            "counters are in no scrape now."
        ),
        impact=(
            "Whether records reach {{ $labels.target }} is not known: no other alert of this flow "
            "can fire."
        ),
        first_step=(
            f'Query up{{job="{limits.exporter_job}"}} and read the exporter\'s log; where the '
            "flow was removed on purpose, silence this alert for "
            f"{duration(limits.flow_remembered)}."
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
        description=(
            "MirrorMaker 2's status topic says that the connector failed; it starts no tasks and "
            "takes up no new topics or groups until it is restarted."
        ),
        impact=(
            "New topics, partitions and groups are not replicated, and after the next rebalance "
            "nothing may be."
        ),
        first_step=(
            "Read MirrorMaker 2's log for the connector's exception, mend its cause, then restart "
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
        description=(
            "MirrorMaker 2's status topic says that the task failed; Connect does not restart it "
            "by itself."
        ),
        impact="The partitions of this task are not replicated; those of other tasks are.",
        first_step=(
            "Read MirrorMaker 2's log for the task's exception, mend its cause, then restart the "
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
        summary="Flow {{ $labels.flow }} has lost canary records.",
        description=(
            f"Canaries of the last {duration(limits.canary_lost_window)} that the replicated "
            'position passed and that did not arrive: {{ $value | printf "%.0f" }}.'
        ),
        impact="Records of users may be missing on {{ $labels.target }} in the same way.",
        first_step=(
            "Compare both clusters for the time in question: mm2slo audit --config mm2slo.yaml "
            "--flow '{{ $labels.flow }}'."
        ),
    )


def _affinity(limits: Thresholds) -> Cause:
    moved = by_flow("sum", over("increase", CANARY_MOVED_TOTAL, limits.moved_window))
    return Cause(
        name="MM2AffinityBroken",
        severity=TICKET,
        expr=f"{moved} > 0",
        summary="Flow {{ $labels.flow }} copies records into other partitions.",
        description=(
            f"Canaries of the last {duration(limits.moved_window)} that arrived in another "
            'partition than they were sent to: {{ $value | printf "%.0f" }}.'
        ),
        impact=(
            "Consumers on {{ $labels.target }} see the records of one key out of order, or on two "
            "members of a group."
        ),
        first_step=(
            "Look for a transform (SMT) that changes keys or partitions, and for another producer "
            "on the target's topic."
        ),
    )
