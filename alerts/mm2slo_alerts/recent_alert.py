"""Alerts that fire while another alert fired recently; they only inhibit, no one receives them.

After a fault ends, windows still hold its bad events, and an exporter that restarts has not read
everything yet. The page itself ends with the fault and inhibits nothing afterwards. These alerts
look back at Prometheus's series `ALERTS`, so they exist only after a page has fired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts import catching_up
from mm2slo_alerts.burn.pair_alerts import ALERTS as BURNS
from mm2slo_alerts.rule_model import PRODUCTION, AlertRule, Group, Links, Scale
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_core.objectives import WINDOW_PAIRS
from mm2slo_core.promql import duration, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

ALERT: Final = "MM2RecentlyPaged"
INTERVAL: Final = 30.0
"""Seconds between two evaluations; inhibited alerts must fire at least this much later."""

_MINUTE: Final = 60.0
_AFTER_WINDOW: Final = 15 * _MINUTE
"""Added to a short window: a page's `for` and `keep_firing_for` of 5 minutes each, or the 5
minutes between two samples of a ticket's window; and 5 minutes of margin."""
_OF_FLOW: Final = ("flow", "source", "target")
_OF_OBJECTIVE: Final = (*_OF_FLOW, "sli", "tier")
_OF_CLUSTER: Final = ("cluster", "source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentAlert:
    """The alert `of` fired within the last `within` seconds; one alert per value of labels `by`."""

    of: str
    within: float
    by: tuple[str, ...]

    @property
    def labels(self) -> dict[str, str]:
        """Labels that inhibitions match; a scaled rule keeps production's values."""
        return {"of": self.of, "within": duration(self.within)}


def _after(of: str, by: tuple[str, ...], *pairs: str) -> Mapping[str, RecentAlert]:
    """By pair of windows: for as long as its short window may hold the fault of *of*."""
    return {
        pair.name: RecentAlert(of=of, within=pair.short + _AFTER_WINDOW, by=by)
        for pair in WINDOW_PAIRS
        if pair.name in pairs
    }


AFTER_BURN: Final[Mapping[str, Mapping[str, RecentAlert]]] = {
    "fast": _after(BURNS["fast"], _OF_OBJECTIVE, "steady", "slow", "creeping"),
    "steady": _after(BURNS["steady"], _OF_OBJECTIVE, "slow", "creeping"),
    "slow": _after(BURNS["slow"], _OF_OBJECTIVE, "creeping"),
}
"""After an alert of the first pair, the slower pairs add nothing about the objective."""
AFTER_STOP: Final = _after("MM2FlowStopped", _OF_FLOW, "steady", "slow", "creeping")
"""Short windows still hold a stop that is over."""
AFTER_CATCHING_UP: Final = _after(catching_up.ALERT, _OF_FLOW, "fast", "slow", "creeping")
"""Events are bad until the flow has caught up, and stay in the windows after that."""
AFTER_OUTAGE: Final = _after("MM2ClusterUnreachable", _OF_CLUSTER, "slow", "creeping")
"""Flows of the cluster burn like stopped ones; one alert per role of the cluster.
MM2ClusterRecentlyUnreachable inhibits the pages."""

JUST_AFTER_STOP: Final = RecentAlert(of="MM2FlowStopped", within=5 * _MINUTE, by=_OF_FLOW)
"""Partitions and tasks resume one after the other."""
JUST_AFTER_EXPORTER: Final = RecentAlert(of="MM2ExporterDown", within=10 * _MINUTE, by=())
"""A flow has series again once its internal topics were read to their end."""
UNSEEN_BY_EXPORTER: Final = RecentAlert(of="MM2ExporterDown", within=70 * _MINUTE, by=())
"""Coverage is a share of the last hour, recorded every 5 minutes."""
UNSEEN_IN_OUTAGE: Final = RecentAlert(
    of="MM2ClusterUnreachable", within=70 * _MINUTE, by=_OF_CLUSTER
)
UNSEEN_BY_ABSENCE: Final = RecentAlert(of="MM2FlowMetricsAbsent", within=70 * _MINUTE, by=_OF_FLOW)

RECENT_ALERTS: Final = (
    *(recent for slower in AFTER_BURN.values() for recent in slower.values()),
    *AFTER_STOP.values(),
    *AFTER_CATCHING_UP.values(),
    *AFTER_OUTAGE.values(),
    JUST_AFTER_STOP,
    JUST_AFTER_EXPORTER,
    UNSEEN_BY_EXPORTER,
    UNSEEN_IN_OUTAGE,
    UNSEEN_BY_ABSENCE,
)


def groups(
    links: Links | None = None,
    scale: Scale = PRODUCTION,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> tuple[Group, ...]:
    """One group: flows that catch up, then a rule for each of `RECENT_ALERTS`."""
    to, limits = links or Links(), thresholds.scaled(scale)
    recent = (_rule(each, to, scale) for each in RECENT_ALERTS)
    rules = (catching_up.rule(limits, to), *recent)
    return (Group(name="mm2slo-recent-alerts", interval=scale(INTERVAL), rules=rules),)


def _rule(recent: RecentAlert, links: Links, scale: Scale) -> AlertRule:
    fired = f'ALERTS{{alertname={quoted(recent.of)}, alertstate="firing"}}'
    within = duration(scale(recent.within))
    by = f" by ({', '.join(recent.by)}) " if recent.by else ""
    return AlertRule(
        alert=ALERT,
        expr=f"group{by}(present_over_time({fired}[{within}]))",
        labels={"severity": "none", **recent.labels},
        annotations={
            "summary": f"{recent.of} fired within the last {duration(recent.within)}.",
            "impact": f"None: {recent.of} reported the fault, and this alert inhibits its effects.",
            "action": f"Query ALERTS{{alertname={quoted(recent.of)}}}.",
            **links.annotations(ALERT, of_flow=bool(recent.by)),
        },
    )
