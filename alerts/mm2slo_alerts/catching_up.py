"""A flow that works off its backlog after a paged fault.

The page of a stop ends when records arrive again, long before the backlog is gone. Until then
records are late, which the page has reported already. A flow whose lag does not fall is a fault of
its own and alerts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes.cause_expressions import by_flow, latest
from mm2slo_alerts.rule_model import AlertRule
from mm2slo_core.catalogue import FLOW_LABELS, FLOW_LAG_SECONDS
from mm2slo_core.promql import duration, number, quoted, select

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Links
    from mm2slo_alerts.thresholds import Thresholds

ALERT: Final = "MM2CatchingUp"


def rule(limits: Thresholds, links: Links) -> AlertRule:
    """An alert that only inhibits; *limits* are already scaled.

    It fires only if the lag, extrapolated, is gone in time: a lag that merely fluctuates falls in
    as many half hours as it rises.
    """
    lag = select(FLOW_LAG_SECONDS)
    behind = by_flow("max", latest(FLOW_LAG_SECONDS, limits))
    predicted = (
        f"max by ({', '.join(FLOW_LABELS)}) (predict_linear("
        f"{lag}[{duration(limits.catching_up_trend)}], {number(limits.catching_up_ahead)}))"
    )
    min_lag = number(limits.catching_up_min_lag)
    stopped = f"group by (flow) ({_paged('MM2FlowStopped', limits)})"
    unreachable = _paged("MM2ClusterUnreachable", limits)
    roles = "".join(
        f"\n  or\n  group by (flow) ({lag} and on ({role}) {unreachable})"
        for role in ("source", "target")
    )
    return AlertRule(
        alert=ALERT,
        expr=(
            f"{behind} > {min_lag}\nand\n{predicted} < {min_lag}\n"
            f"and on (flow) (\n  {stopped}{roles}\n)"
        ),
        labels={"severity": "none"},
        annotations={
            "summary": (
                "Flow {{ $labels.flow }} is catching up after a page: its oldest unreplicated "
                "record is {{ $value | humanizeDuration }} old."
            ),
            "impact": (
                "Consumers on {{ $labels.target }} read old data, as the page reported, for up to "
                f"{duration(limits.catching_up_ahead)}."
            ),
            "action": 'Query mm2_catchup_eta_seconds{flow="{{ $labels.flow }}"}.',
            **links.annotations(ALERT),
        },
    )


def _paged(alert: str, limits: Thresholds) -> str:
    fired = f'ALERTS{{alertname={quoted(alert)}, alertstate="firing"}}'
    return f"present_over_time({fired}[{duration(limits.catching_up_after)}])"
