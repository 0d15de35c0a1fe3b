"""One alert about a cause: expression and annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.rule_model import AlertRule, Subject

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Links

PAGE: Final = "page"
TICKET: Final = "ticket"
NONE: Final = "none"
"""Of the watchdog only, which has its own receiver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An alert rule before its links are added.

    The texts may hold Prometheus templates, but no character that Slack's markup uses (angle
    brackets, ampersands, backticks): the message template escapes labels only. `hold` and `keep`
    are in seconds.
    """

    name: str
    severity: str
    expr: str
    summary: str
    impact: str
    action: str
    hold: float = 0.0
    keep: float = 0.0
    lasted: str = ""
    """How long an incident of several outages lasted; empty for a single one."""
    subject: Subject = Subject.FLOW

    def rule(self, links: Links) -> AlertRule:
        """Return the rule with *links* in its annotations."""
        return AlertRule(
            alert=self.name,
            expr=self.expr,
            hold=self.hold,
            keep=self.keep,
            labels={"severity": self.severity},
            annotations={
                "summary": self.summary,
                "impact": self.impact,
                "action": self.action,
                **({"lasted": self.lasted} if self.lasted else {}),
                **links.annotations(self.name, self.subject),
            },
        )
