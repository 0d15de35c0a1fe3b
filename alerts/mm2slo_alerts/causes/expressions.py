"""Parts that several expressions share.

Gauges are read with `last_over_time`: it bridges failed scrapes and, unlike `max_over_time`, does
not draw out a fault that is over, which would defeat an alert's `for`. Replicas of the exporter
become one by aggregation over what tells them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import FLOW_LABELS, FLOW_STATE, Metric
from mm2slo_core.catalogue.recorded import MAINTENANCE_ACTIVE
from mm2slo_core.promql import Matcher, Vector, aggregate, equal, on, over

if TYPE_CHECKING:
    from mm2slo_alerts.thresholds import Thresholds

TOPIC: Final = "{{ with $labels.topic }}topic {{ . }} of {{ end }}{{ $labels.flow }}"
"""The topic where the exporter's granularity tells it, and the flow."""


def latest(metric: Metric, limits: Thresholds, *matchers: Matcher) -> Vector:
    """Each series' last value, a failed scrape or two notwithstanding."""
    return over("last_over_time", metric, limits.bridge, *matchers)


def by_flow(operator: str, vector: Vector, *more: str) -> Vector:
    """`operator by (flow, source, target, *more) (vector)`.

    Where the exporter publishes a coarser granularity, labels of *more* are absent.
    """
    return aggregate(operator, vector, (*FLOW_LABELS, *more))


def flow_stopped(limits: Thresholds, labels: tuple[str, ...] = FLOW_LABELS) -> str:
    """1 for each flow that a replica sees stopped."""
    stopped = latest(FLOW_STATE, limits, equal("state", "stopped"))
    return f"{aggregate('max', stopped, labels)} == 1"


def unless_maintained(expression: str) -> str:
    """*expression* without flows that are under planned maintenance."""
    planned = Vector(MAINTENANCE_ACTIVE.name, MAINTENANCE_ACTIVE.labels)
    return f"{expression}\nunless {on(('flow',), planned)} {planned}"
