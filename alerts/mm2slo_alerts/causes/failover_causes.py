"""Causes that a failover would meet: stalled checkpoints, groups that are not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause import TICKET, Cause
from mm2slo_alerts.causes.cause_expressions import (
    by_flow,
    interrupted,
    latest,
    unless_maintained,
)
from mm2slo_alerts.rule_model import Subject
from mm2slo_core.catalogue import (
    CHECKPOINT_AGE_SECONDS,
    CHECKPOINT_LAG_RECORDS,
    FAILOVER_BLOCKED,
    FAILOVER_READY,
    FLOW_LABELS,
)
from mm2slo_core.promql import aggregate, number, over

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

_BLOCKED = f"max by (reason) ({FAILOVER_BLOCKED.name}{{flow=%q,group=%q}}) == 1"
_REASONS: Final = (
    f'{{{{ range $at, $found := printf "{_BLOCKED}" $labels.flow $labels.group | query '
    '| sortByLabel "reason" }}{{ if $at }}, {{ end }}{{ $found | label "reason" }}'
    "{{ else }}unknown{{ end }}"
)


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    return (_checkpoint(limits), _not_ready(limits))


def _checkpoint(limits: Thresholds) -> Cause:
    """The age of the newest checkpoint is not enough: an idle group needs no new one.

    Without a new checkpoint, the lag behind the newest one rises as the group commits.
    """
    moved = aggregate(
        "sum",
        over("delta", CHECKPOINT_LAG_RECORDS, limits.checkpoint_age),
        (*FLOW_LABELS, "group", "instance"),
    )
    moved_most = by_flow("max", moved, "group")
    age = by_flow("min", latest(CHECKPOINT_AGE_SECONDS, limits), "group")
    return Cause(
        name="MM2CheckpointStalled",
        severity=TICKET,
        subject=Subject.FAILOVER,
        expr=unless_maintained(
            f"{moved_most} > {number(limits.checkpoint_moved)}\n"
            f"and\n{age} > {number(limits.checkpoint_age)}\n"
            f"unless on (flow) {interrupted(limits.outage_memory)}"
        ),
        hold=limits.checkpoint_hold,
        summary=(
            "Checkpoints of group {{ $labels.group }} in flow {{ $labels.flow }} are stalled: the "
            'group advanced by {{ $value | printf "%.0f" }} records without a new one.'
        ),
        impact=(
            "After a failover the group would read all records since the last checkpoint again."
        ),
        action=(
            'Query mm2_connector_state{flow="{{ $labels.flow }}"} == 1 for the checkpoint '
            'connector, and mm2_failover_blocked{group="{{ $labels.group }}"} == 1 for the reason.'
        ),
    )


def _not_ready(limits: Thresholds) -> Cause:
    ready = by_flow("max", latest(FAILOVER_READY, limits), "group")
    return Cause(
        name="MM2FailoverNotReady",
        severity=TICKET,
        subject=Subject.FAILOVER,
        expr=unless_maintained(
            f"{ready} == 0\nunless on (flow) {interrupted(limits.outage_memory)}"
        ),
        hold=limits.failover_hold,
        summary=(
            "Group {{ $labels.group }} is not ready to fail over ({{ $labels.flow }}): "
            f"{_REASONS}."
        ),
        impact=(
            "If {{ $labels.source }} failed now, the group would skip records, read too many "
            "again, or not start."
        ),
        action=(
            'Query mm2_failover_redelivery_records{flow="{{ $labels.flow }}",'
            'group="{{ $labels.group }}"} and look up the reasons in the runbook.'
        ),
    )
