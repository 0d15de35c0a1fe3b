"""What every board asks for: series of the chosen flows, and replicas that count once.

A chosen value stands between backticks in Grafana's format `:regex`. That is the only pair that
survives every name of a topic or a group: the format escapes what means something in a pattern,
and a raw string of PromQL takes backslashes and quotes as they are. Grafana's usual format
doubles backslashes for strings in quotes, and leaves the quote itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import CHAIN_WINDOWS, FLOW_INFO, WINDOW, Metric
from mm2slo_core.catalogue.external import ALERTS, ALERTS_LABELS
from mm2slo_core.catalogue.failover import FAILOVER_READY
from mm2slo_core.catalogue.flow import TOPIC_INFO
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING, COVERAGE
from mm2slo_core.promql import Matcher, Vector, aggregate, equal, matching, over, select
from mm2slo_dashboards.model import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.catalogue import RecordedSeries
    from mm2slo_dashboards.model import State

RATE: Final = "$__rate_interval"
"""Grafana's range for rates: four scrapes at least, and no gap between two points."""
RANGE: Final = "$__range"
"""The time range that is shown."""
_STEPS: Final = 600.0
"""Seconds; series that are recorded every 5 minutes are read over two of their steps."""


@dataclass(frozen=True, slots=True)
class Chosen(Matcher):
    """A label that fits what is chosen at the top of the board."""

    def __str__(self) -> str:
        return f"{self.label}{self.operator}`{self.value}`"


def chosen(variable: str, label: str | None = None) -> Chosen:
    """*label* (by default named as the variable) is one of the chosen values of *variable*."""
    return Chosen(label or variable, "=~", f"${{{variable}:regex}}")


IN_FLOW: Final = chosen("flow")
IN_TOPIC: Final = chosen("topic")
IN_GROUP: Final = chosen("group")

FLOWS: Final = Variable(
    name="flow", title="Flow", label="flow", series=select(FLOW_INFO), several=True
)
ONE_FLOW: Final = Variable(
    name="flow", title="Flow", label="flow", series=select(FLOW_INFO), several=False
)
TOPICS: Final = Variable(
    name="topic",
    title="Topic",
    label="topic",
    series=select(TOPIC_INFO, IN_FLOW),
    # At granularity `flow` series have no topic, which `.+` would leave out.
    everything=".*",
)
GROUPS: Final = Variable(
    name="group", title="Consumer group", label="group", series=select(FAILOVER_READY, IN_FLOW)
)


def of_flow(series: Metric | RecordedSeries, *matchers: Matcher, part: str = "") -> Vector:
    """The newest sample of the chosen flows."""
    return select(series, IN_FLOW, *matchers, part=part)


def recorded(series: RecordedSeries, *matchers: Matcher) -> Vector:
    """The newest sample of the chosen flows, of series recorded every 30 seconds or 5 minutes."""
    slow = series in {BUDGET_REMAINING, *COVERAGE.values()} or series.name.endswith(
        (WINDOW, "step5m", *CHAIN_WINDOWS)
    )
    if slow:
        return over("last_over_time", series, _STEPS, IN_FLOW, *matchers)
    return of_flow(series, *matchers)


def worst(vector: Vector, *labels: str) -> Vector:
    """The largest value by *labels*; replicas of the exporter become one."""
    return aggregate("max", vector, labels)


def least(vector: Vector, *labels: str) -> Vector:
    """The smallest value by *labels*."""
    return aggregate("min", vector, labels)


def total(vector: Vector, *labels: str) -> Vector:
    """The sum by *labels*."""
    return aggregate("sum", vector, labels)


def rate(metric: Metric, *matchers: Matcher, by: Sequence[str], within: str) -> Vector:
    """Events a second by the labels *by*, replicas counted once.

    *within* is the finest label that replicas share, as `topic`: of each the fastest replica
    counts, and then they are added up.
    """
    fast = worst(over("rate", metric, RATE, *matchers), *by, within)
    return total(fast, *by)


def growth(metric: Metric, *matchers: Matcher, by: Sequence[str]) -> Vector:
    """Events within the time range that is shown, by the replica that saw most."""
    return worst(over("increase", metric, RANGE, *matchers), *by)


def top(count: int, vector: Vector) -> Vector:
    """The *count* largest ones."""
    return Vector(f"topk({count}, {vector})", vector.labels)


def bottom(count: int, vector: Vector) -> Vector:
    """The *count* smallest ones."""
    return Vector(f"bottomk({count}, {vector})", vector.labels)


def since(vector: Vector) -> Vector:
    """Seconds since the moments of *vector*, which are in epoch seconds."""
    return Vector(f"time() - {vector}", vector.labels)


def where(vector: Vector, condition: str) -> Vector:
    """Only those for which *condition* holds, as `== 1`."""
    return Vector(f"{vector} {condition}", vector.labels)


def quantile(share: float, buckets: Vector) -> Vector:
    """The value below which *share* of the events were, by the labels of *buckets* but `le`."""
    rest = tuple(label for label in buckets.labels if label != "le")
    return Vector(f"histogram_quantile({share:g}, {buckets})", rest)


def coded(
    metric: Metric, states: Sequence[State], *labels: str, matchers: Sequence[Matcher] = ()
) -> Vector:
    """The code of the state that each is in; where replicas disagree, the gravest one.

    States are in the label `state`, and the gravest has the highest code.
    """
    branches = (
        f"({worst(select(metric, *matchers, equal('state', state.word)), *labels)} == 1)"
        f" * {state.code}"
        for state in sorted(states, key=lambda state: -state.code)
    )
    return Vector(" or ".join(branches), labels)


def firing(*matchers: Matcher) -> Vector:
    """Alerts that people are told of, and that fire."""
    given = (equal("alertstate", "firing"), matching("severity", "page|ticket"), *matchers)
    return Vector(f"{ALERTS}{{{', '.join(map(str, given))}}}", ALERTS_LABELS)
