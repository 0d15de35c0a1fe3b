"""A flow that works off what a paged fault left: behind still, and on its way.

The page of a stop ends when records arrive again, long before the last of the backlog has. Until
then data is as old as before and records are late, and it is one story with the page, for as long
as the flow gains: one that does not is a fault of its own, and is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.expressions import by_flow, latest
from mm2slo_alerts.model import AlertRule
from mm2slo_core.catalogue import FLOW_LABELS, FLOW_LAG_SECONDS
from mm2slo_core.promql import duration, number, quoted, select

if TYPE_CHECKING:
    from mm2slo_alerts.model import Links
    from mm2slo_alerts.thresholds import Thresholds

ALERT: Final = "MM2CatchingUp"


def rule(limits: Thresholds, links: Links) -> AlertRule:
    """Reaches nobody; *limits* are those of the scale.

    By its own course the lag is gone in time, or the flow is not said to gain: a lag that merely
    wavers has a falling half hour as often as a rising one.
    """
    lag = select(FLOW_LAG_SECONDS)
    behind = by_flow("max", latest(FLOW_LAG_SECONDS, limits))
    course = (
        f"max by ({', '.join(FLOW_LABELS)}) (predict_linear("
        f"{lag}[{duration(limits.catching_up_trend)}], {number(limits.catching_up_ahead)}))"
    )
    least = number(limits.catching_up_behind)
    stopped = f"group by (flow) ({_paged('MM2FlowStopped', limits)})"
    away = _paged("MM2ClusterUnreachable", limits)
    roles = "".join(
        f"\n  or\n  group by (flow) ({lag} and on ({role}) {away})" for role in ("source", "target")
    )
    return AlertRule(
        alert=ALERT,
        expr=f"{behind} > {least}\nand\n{course} < {least}\nand on (flow) (\n  {stopped}{roles}\n)",
        labels={"severity": "none"},
        annotations={
            "summary": "Flow {{ $labels.flow }} catches up after a fault that was paged.",
            "description": (
                "The oldest record that waits is {{ $value | humanizeDuration }} old, and by its "
                f"course it is copied within {duration(limits.catching_up_ahead)}."
            ),
            "impact": (
                "Consumers on {{ $labels.target }} read old data until then: the page told of it."
            ),
            "first_step": 'Query mm2_catchup_eta_seconds{flow="{{ $labels.flow }}"}.',
            **links.annotations(ALERT),
        },
    )


def _paged(alert: str, limits: Thresholds) -> str:
    fired = f'ALERTS{{alertname={quoted(alert)}, alertstate="firing"}}'
    return f"present_over_time({fired}[{duration(limits.catching_up_after)}])"
