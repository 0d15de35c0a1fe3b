"""PromQL for mm2slo's alerts about the selected flows, their clusters, and monitoring itself.

All alerts of mm2slo are named `MM2...`; the watchdog, which always fires, has the severity `none`.
"""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue import FLOW_INFO
from mm2slo_core.catalogue.external_metrics import ALERTS, ALERTS_FOR_STATE, ALERTS_LABELS
from mm2slo_core.promql import Matcher, Vector, either, equal, matching, unequal
from mm2slo_dashboards.panel_queries import MATCH_FLOW, flow_series, min_by

_OURS: Final = (matching("alertname", "MM2.+"), unequal("severity", "none"))
_NO_CLUSTER: Final = equal("cluster", "")


def flow_alerts(*matchers: Matcher) -> Vector:
    """Firing alerts of the selected flows."""
    return _firing(MATCH_FLOW, *matchers)


def alerts_by_scope() -> tuple[Vector, ...]:
    """Firing alerts of monitoring itself, of clusters, of flows and of objectives.

    A cause precedes its consequences.
    """
    flows = flow_series(FLOW_INFO)
    clusters = (
        f'label_replace({flows}, "cluster", "$1", "{end}", "(.+)")' for end in ("source", "target")
    )
    of_clusters = f"{_firing(unequal('cluster', ''))} and on (cluster) ({' or '.join(clusters)})"
    return (
        _firing(equal("flow", ""), _NO_CLUSTER),
        Vector(f"({of_clusters})", ALERTS_LABELS),
        flow_alerts(equal("sli", "")),
        flow_alerts(unequal("sli", "")),
    )


def alert_starts(*labels: str) -> Vector:
    """When the firing alerts became active, in milliseconds since the epoch."""
    firing = either(*alerts_by_scope())
    since = f"{ALERTS_FOR_STATE}{_text(_OURS)} and ignoring (alertstate) ({firing})"
    first = min_by(Vector(since, ALERTS_LABELS), *labels)
    return Vector(f"1000 * {first}", first.labels)


def _firing(*matchers: Matcher) -> Vector:
    chosen = (equal("alertstate", "firing"), *_OURS, *matchers)
    return Vector(f"{ALERTS}{_text(chosen)}", ALERTS_LABELS)


def _text(matchers: tuple[Matcher, ...]) -> str:
    return f"{{{', '.join(map(str, matchers))}}}"
