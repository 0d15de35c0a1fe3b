"""One alert about a cause: when it fires, and what it says to the person it reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.budget_words import budget_words
from mm2slo_alerts.model import AlertRule
from mm2slo_alerts.recording.timing import STEP
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING, BURN, OBJECTIVE_WINDOW
from mm2slo_core.promql import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.model import Links, Scale

PAGE: Final = "page"
TICKET: Final = "ticket"
NONE: Final = "none"
"""Told to machines only: routes end at no receiver that people read."""


def least_budget(scale: Scale) -> str:
    """The flow's indicator with the least budget left, and when the first budget is spent."""
    remaining = f"last_over_time({BUDGET_REMAINING.name}{{flow=%q}}[{duration(2 * scale(STEP))}])"
    ends = f"min(({remaining} > 0) * {OBJECTIVE_WINDOW.name} / ({BURN['1h'].name} > 0))"
    return (
        budget_words(
            f"bottomk(1, {remaining})", "$labels.flow", of=' of {{ . | first | label "sli" }}'
        )
        + f'{{{{ with printf "{ends}" $labels.flow | query }}}}'
        ", and the first one spent in {{ . | first | value | humanizeDuration }} at the last "
        "hour's speed{{ end }}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An alert rule in the words of its author.

    The texts may hold Prometheus's templates, but nothing that means something in Slack's markup
    (angle brackets, ampersands, backticks): labels are escaped by the message's template, these
    texts are read as they are in other places. `hold` and `keep` are in seconds. `labels` tell
    rules of one name apart.
    """

    name: str
    severity: str
    expr: str
    summary: str
    description: str
    impact: str
    first_step: str
    hold: float = 0.0
    keep: float = 0.0
    of_flow: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)

    def rule(self, links: Links, scale: Scale) -> AlertRule:
        """The rule, with the addresses of *links* among its annotations."""
        texts = {
            "summary": self.summary,
            "description": self.description,
            "impact": self.impact,
            "first_step": self.first_step,
        }
        if self.of_flow:
            texts["budget"] = least_budget(scale)
        return AlertRule(
            alert=self.name,
            expr=self.expr,
            hold=self.hold,
            keep=self.keep,
            labels={"severity": self.severity, **self.labels},
            annotations={**texts, **links.annotations(self.name, of_flow=self.of_flow)},
        )
