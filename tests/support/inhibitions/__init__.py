"""Which of several firing alerts Alertmanager delivers, by the generated inhibition rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mm2slo_alerts.alertmanager.inhibition import INHIBITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.promql import Matcher


def matches(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether an alert matches; as in Alertmanager, a missing label is an empty one."""
    return all(_matches(each, labels.get(each.label, "")) for each in matchers)


def delivered(firing: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return those of *firing* that no other alert inhibits.

    A source need not be delivered itself; an alert that matches both sides inhibits nothing.
    """
    alerts = list(firing)
    return [
        alert
        for alert in alerts
        if not any(
            matches(rule.target, alert)
            and matches(rule.source, other)
            and not matches(rule.target, other)
            and all(alert.get(label, "") == other.get(label, "") for label in rule.by)
            for rule in INHIBITIONS
            for other in alerts
        )
    ]


def _matches(matcher: Matcher, found: str) -> bool:
    if matcher.operator in {"=", "!="}:
        same = found == matcher.value
    else:
        same = re.fullmatch(matcher.value, found) is not None
    return same is not matcher.operator.startswith("!")
