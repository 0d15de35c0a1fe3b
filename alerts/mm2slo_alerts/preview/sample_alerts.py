"""Example values for a preview: labels, the alert's value, and recorded series."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    BUDGET_REMAINING,
    BURN,
    FLOW_LABELS,
    OBJECTIVE_WINDOW,
    SLI_LABELS,
)
from mm2slo_core.objectives import DEFAULT_WINDOW
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
_EXHAUSTED: Final = "MM2ErrorBudgetExhausted"
_VALUES: Final = {_EXHAUSTED: 1.13, "MM2SLOCoverageLow": 0.82, "MM2RetentionHeadroomLow": 5_400.0}
_COUNT: Final = 3.0
_BURN: Final = 18.0
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
    burns = "Burn" in rule.alert
    value = _VALUES.get(rule.alert, _BURN if burns else _COUNT)
    left = 1.0 - value if rule.alert == _EXHAUSTED else _LEFT
    return Sample(labels, value, _recorded(about, left))


def _of_flow(flow: Flow) -> dict[str, str]:
    return {"flow": flow.label, "source": flow.source, "target": flow.target}


def _recorded(flow: Flow, left: float) -> dict[str, float]:
    labels = {**_of_flow(flow), **_LABELS}
    chosen = ", ".join(f'{name}="{labels[name]}"' for name in SLI_LABELS)
    values = {
        BUDGET_REMAINING.name: left,
        OBJECTIVE_WINDOW.name: DEFAULT_WINDOW,
        **{series.name: _BURN for series in BURN.values()},
    }
    return {f"{name}{{{chosen}}}": value for name, value in values.items()}
