"""One alert about a cause: when it fires, and what it says to the person it reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.model import AlertRule
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING, BURN, OBJECTIVE_WINDOW

if TYPE_CHECKING:
    from mm2slo_alerts.model import Links

PAGE: Final = "page"
TICKET: Final = "ticket"
NONE: Final = "none"
"""Told to machines only: routes end at no receiver that people read."""

_LEFT = f"bottomk(1, {BUDGET_REMAINING.name}{{flow=%q}})"
_EXHAUSTED = (
    f"min({BUDGET_REMAINING.name}{{flow=%q}} * {OBJECTIVE_WINDOW.name} / "
    f"({BURN['1h'].name} > 0)) > 0"
)
BUDGET: Final = (
    f'{{{{ with printf "{_LEFT}" $labels.flow | query }}}}'
    "{{ . | first | value | humanizePercentage }} of the error budget of "
    '{{ . | first | label "sli" }} left{{ else }}n/a{{ end }}'
    f'{{{{ with printf "{_EXHAUSTED}" $labels.flow | query }}}}'
    ", all of one spent in {{ . | first | value | humanizeDuration }} at the last hour's speed"
    "{{ end }}"
)
"""The flow's indicator with the least budget left, and when the first budget is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An alert rule in the words of its author.

    The texts may hold Prometheus's templates, but nothing that means something in Slack's markup
    (angle brackets, ampersands, backticks): labels are escaped by the message's template, these
    texts are read as they are in other places. `hold` and `keep` are in seconds.
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

    def rule(self, links: Links) -> AlertRule:
        """The rule, with the addresses of *links* among its annotations."""
        texts = {
            "summary": self.summary,
            "description": self.description,
            "impact": self.impact,
            "first_step": self.first_step,
        }
        if self.of_flow:
            texts["budget"] = BUDGET
        return AlertRule(
            alert=self.name,
            expr=self.expr,
            hold=self.hold,
            keep=self.keep,
            labels={"severity": self.severity},
            annotations={**texts, **links.annotations(self.name, of_flow=self.of_flow)},
        )
