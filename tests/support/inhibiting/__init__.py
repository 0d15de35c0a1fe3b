"""What Alertmanager lets through of alerts that fire together, by the generated inhibitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mm2slo_alerts.alertmanager.inhibition import INHIBITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.promql import Matcher


def holds(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether an alert matches, as Alertmanager decides it: a missing label is an empty one."""
    return all(_holds(each, labels.get(each.label, "")) for each in matchers)


def told(firing: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Those of *firing* that are for people and that no other one silences.

    A source need not be told itself, and an alert that matches both sides silences nothing.
    """
    alerts = list(firing)
    return [
        alert
        for alert in alerts
        if alert["severity"] != "none"
        and not any(
            holds(rule.target, alert)
            and holds(rule.source, other)
            and not holds(rule.target, other)
            and all(alert.get(label, "") == other.get(label, "") for label in rule.by)
            for rule in INHIBITIONS
            for other in alerts
        )
    ]


def _holds(matcher: Matcher, found: str) -> bool:
    if matcher.operator in {"=", "!="}:
        same = found == matcher.value
    else:
        same = re.fullmatch(matcher.value, found) is not None
    return same is not matcher.operator.startswith("!")
