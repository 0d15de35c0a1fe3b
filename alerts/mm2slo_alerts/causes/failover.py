"""Causes that a failover would meet: checkpoints that stand still, groups that are not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause import TICKET, Cause
from mm2slo_alerts.causes.expressions import by_flow, latest, unless_maintained
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
    "{{ else }}not told any more{{ end }}"
)


def causes(limits: Thresholds) -> tuple[Cause, ...]:
    """The alerts of consumer groups."""
    return (_checkpoint(limits), _not_ready(limits))


def _checkpoint(limits: Thresholds) -> Cause:
    """The age of the newest checkpoint alone says nothing: an idle group has no need of one.

    While no checkpoint comes, the lag behind the newest one rises exactly as the group commits.
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
        expr=unless_maintained(
            f"{moved_most} > {number(limits.checkpoint_moved)}\n"
            f"and\n{age} > {number(limits.checkpoint_age)}"
        ),
        hold=limits.checkpoint_hold,
        summary="Checkpoints of group {{ $labels.group }} in flow {{ $labels.flow }} stand still.",
        description=(
            'The group has moved on by {{ $value | printf "%.0f" }} records on '
            "{{ $labels.source }} without a new checkpoint on {{ $labels.target }}."
        ),
        impact=(
            "After a failover the group would read again all that it has read since, and more "
            "with every minute."
        ),
        first_step=(
            'Query mm2_connector_state{flow="{{ $labels.flow }}"} == 1 for the checkpoint '
            'connector, and mm2_failover_blocked{group="{{ $labels.group }}"} == 1 for the reason.'
        ),
    )


def _not_ready(limits: Thresholds) -> Cause:
    ready = by_flow("max", latest(FAILOVER_READY, limits), "group")
    return Cause(
        name="MM2FailoverNotReady",
        severity=TICKET,
        expr=unless_maintained(f"{ready} == 0"),
        hold=limits.failover_hold,
        summary="Group {{ $labels.group }} could not fail over along {{ $labels.flow }}.",
        description=(
            f"It would not resume correctly on {{{{ $labels.target }}}}. Reasons: {_REASONS}."
        ),
        impact=(
            "If {{ $labels.source }} went down now, the group would skip records, read too many "
            "again, or not start."
        ),
        first_step=(
            'Query mm2_failover_redelivery_records{flow="{{ $labels.flow }}",'
            'group="{{ $labels.group }}"} and look the reasons up in the runbook.'
        ),
    )
