"""Parts that several expressions share.

Gauges are read with `last_over_time`: it bridges failed scrapes and, unlike `max_over_time`, does
not prolong a fault that is over. Replicas of the exporter are aggregated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import FLOW_LABELS, FLOW_STATE, Metric
from mm2slo_core.catalogue.recorded_series import MAINTENANCE_ACTIVE
from mm2slo_core.promql import Matcher, Vector, aggregate, equal, on, over

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

TOPIC: Final = "{{ with $labels.topic }}topic {{ . }} of {{ end }}{{ $labels.flow }}"
"""The topic, where the exporter's granularity includes it, and the flow."""


def latest(metric: Metric, limits: Thresholds, *matchers: Matcher) -> Vector:
    """Select the last value of each series, also after a failed scrape."""
    return over("last_over_time", metric, limits.bridge, *matchers)


def by_flow(operator: str, vector: Vector, *more: str) -> Vector:
    """Return `operator by (flow, source, target, *more) (vector)`.

    With a coarser granularity of the exporter, labels of *more* are absent.
    """
    return aggregate(operator, vector, (*FLOW_LABELS, *more))


def flow_stopped(limits: Thresholds, labels: tuple[str, ...] = FLOW_LABELS) -> str:
    """Return an expression that is 1 for each flow that any replica reports as stopped."""
    stopped = latest(FLOW_STATE, limits, equal("state", "stopped"))
    return f"{aggregate('max', stopped, labels)} == 1"


def unless_maintained(expression: str) -> str:
    """Exclude flows under planned maintenance from *expression*."""
    planned = Vector(MAINTENANCE_ACTIVE.name, MAINTENANCE_ACTIVE.labels)
    return f"{expression}\nunless {on(('flow',), planned)} {planned}"
