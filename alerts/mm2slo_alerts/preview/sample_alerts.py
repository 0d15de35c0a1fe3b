"""Example values for a preview: labels, the alert's value, and recorded series."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    BUDGET_REMAINING,
    FLOW_LABELS,
    SLI_LABELS,
)
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.rule_model import AlertRule

_LABEL: Final = re.compile(r"\$labels\.(\w+)")
_LABELS: Final = {
    "sli": "latency",
    "tier": "60s",
    "owner": "streaming",
    "topic": "orders",
    "group": "billing",
    "connector": "MirrorSourceConnector",
    "task": "0",
    "config": "cleanup.policy",
    "side": "source",
    "stage": "end_offsets",
    "reason": "timeout",
    "job": "mm2slo",
    "rule_group": "mm2slo-burn",
    "integration": "slack",
}
_VALUES: Final = {
    "MM2ErrorBudgetBurn": 18.0,
    "MM2ErrorBudgetExhausted": 1.13,
    "MM2SLOCoverageLow": 0.82,
    "MM2RetentionHeadroomLow": 5_400.0,
    "MM2FlowStopped": 1.0,
    "MM2ClusterUnreachable": 1.0,
    "MM2LogsNotShipped": 900.0,
}
_COUNT: Final = 3.0
_LEFT: Final = 0.61


@dataclass(frozen=True, slots=True)
class Sample:
    """Values that an alert fires with; `series` are samples by selector."""

    labels: Mapping[str, str]
    value: float
    series: Mapping[str, float]


def sample(rule: AlertRule, flow: Flow | None = None) -> Sample:
    """Return example values for *rule*, about *flow* if it has one."""
    about = flow or Flow("us", "eu")
    texts = " ".join(rule.annotations.values())
    named = set(_LABEL.findall(texts))
    known = {**_LABELS, **_of_flow(about), "cluster": about.source}
    wanted = set(named)
    if named & set(FLOW_LABELS):
        wanted |= set(FLOW_LABELS)
    if "sli" in named:
        wanted |= {"sli", "tier", "owner"}
    labels = {name: known.get(name, "example") for name in sorted(wanted)}
    value = _VALUES.get(rule.alert, _COUNT)
    chosen = ", ".join(f'{name}="{known[name]}"' for name in SLI_LABELS)
    return Sample(labels, value, {f"{BUDGET_REMAINING.name}{{{chosen}}}": _LEFT})


def _of_flow(flow: Flow) -> dict[str, str]:
    return {"flow": flow.label, "source": flow.source, "target": flow.target}
