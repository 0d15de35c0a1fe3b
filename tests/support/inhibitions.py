"""Which of several firing alerts Alertmanager delivers, by the generated inhibition rules."""

from collections.abc import Iterable, Mapping

from mm2slo_alerts.alertmanager_config import INHIBITIONS
from mm2slo_alerts.alertmanager_variants import matches


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
