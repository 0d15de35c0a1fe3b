"""One alert about a cause: expression and annotations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.budget_text import budget_text, exhausted_in
from mm2slo_alerts.recording.rule_intervals import STEP
from mm2slo_alerts.rule_model import AlertRule
from mm2slo_core.catalogue.recorded_series import BUDGET_REMAINING, BURN, OBJECTIVE_WINDOW
from mm2slo_core.promql import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.rule_model import Links, Scale

PAGE: Final = "page"
TICKET: Final = "ticket"
NONE: Final = "none"
"""Never delivered: routes discard it."""


def lowest_budget(scale: Scale) -> str:
    """Template: the flow's lowest remaining budget, and when the next budget is exhausted."""
    remaining = f"last_over_time({BUDGET_REMAINING.name}{{flow=%q}}[{duration(2 * scale(STEP))}])"
    ends = f"min(({remaining} > 0) * {OBJECTIVE_WINDOW.name} / ({BURN['1h'].name} > 0))"
    sli = '{{ . | first | label "sli" | reReplaceAll "_" " " }} '
    return (
        budget_text(f"bottomk(1, {remaining})", "$labels.flow", of=sli)
        + f'{{{{ with printf "{ends}" $labels.flow | query }}}}'
        f"; the first budget is {exhausted_in()}{{{{ end }}}}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An alert rule before its links and budget are added.

    The texts may hold Prometheus templates, but no character that Slack's markup uses (angle
    brackets, ampersands, backticks): the message template escapes labels only. `hold` and `keep`
    are in seconds. `labels` distinguish rules of one name.
    """

    name: str
    severity: str
    expr: str
    summary: str
    impact: str
    action: str
    hold: float = 0.0
    keep: float = 0.0
    of_flow: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)

    def rule(self, links: Links, scale: Scale) -> AlertRule:
        """Return the rule with *links* in its annotations."""
        texts = {
            "summary": self.summary,
            "impact": self.impact,
            "action": self.action,
        }
        if self.of_flow:
            texts["budget"] = lowest_budget(scale)
        return AlertRule(
            alert=self.name,
            expr=self.expr,
            hold=self.hold,
            keep=self.keep,
            labels={"severity": self.severity, **self.labels},
            annotations={**texts, **links.annotations(self.name, of_flow=self.of_flow)},
        )
