"""PromQL for panels: series and alerts of the selected flows.

Replicas of the exporter are counted once. A selected value is put between backticks in Grafana's
format `:regex`. Only this works for every name of a topic or group: the format escapes regular
expressions, and a raw string of PromQL takes backslashes. All alerts of mm2slo are named `MM2...`;
the watchdog, which always fires, has the severity `none`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mm2slo_core.catalogue.flow_metrics import (
    FAILOVER_READY,
    FLOW_INFO,
    RETENTION_LOST_RECORDS_TOTAL,
    TOPIC_INFO,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS, Metric
from mm2slo_core.catalogue.prometheus_series import (
    ALERTS,
    ALERTS_FOR_STATE,
    ALERTS_LABELS,
    BUDGET_REMAINING,
    CHAIN_WINDOWS,
    CLUSTER_ALERTS,
    COVERAGE,
    WATCHDOG,
    WINDOW,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import (
    Matcher,
    Vector,
    aggregate,
    continued_increase,
    either,
    equal,
    matching,
    over,
    select,
    unequal,
    unmatching,
)
from mm2slo_core.indicators.replication_lag import LOSS_LOOKBACK
from mm2slo_dashboards.dashboard_model import StateMapping, Variable

RATE_VARIABLE: Final = "$__rate_interval"
"""Grafana's range for rates: at least four scrapes, and no gap between two points."""

RANGE_VARIABLE: Final = "$__range"
"""The time range of the panel."""

INTERVAL_VARIABLE: Final = "$__interval"
"""The distance of two points."""

_STEPS: Final = 600.0
"""Seconds; series recorded every 5 minutes are read over two of their steps, because Prometheus's
lookback is 5 minutes as well: between two steps an instant selector may have no sample."""

_MEMORY: Final = 1800.0
"""Seconds for which a flow is known after its last scrape: alerts about its clusters go on without
one for a quarter of an hour and `keep_firing_for`."""


@dataclass(frozen=True, slots=True)
class VariableMatcher(Matcher):
    """Matches a label with a dashboard variable."""

    def __str__(self) -> str:
        return f"{self.label}{self.operator}`{self.value}`"


def match_variable(variable: str) -> VariableMatcher:
    """The label *variable* has one of the selected values of the variable of that name."""
    return VariableMatcher(variable, "=~", f"${{{variable}:regex}}")


MATCH_FLOW: Final = match_variable("flow")
MATCH_TOPIC: Final = match_variable("topic")
MATCH_GROUP: Final = match_variable("group")

FLOWS_VARIABLE: Final = Variable(
    name="flow", title="Flow", label="flow", series=select(FLOW_INFO), multi=True
)

FLOW_VARIABLE: Final = Variable(
    name="flow", title="Flow", label="flow", series=select(FLOW_INFO), multi=False
)

TOPICS_VARIABLE: Final = Variable(
    name="topic",
    title="Topic",
    label="topic",
    series=select(TOPIC_INFO, MATCH_FLOW),
    # At granularity `flow` series have no topic, which `.+` would leave out.
    all_value=".*",
)

GROUPS_VARIABLE: Final = Variable(
    name="group", title="Consumer group", label="group", series=select(FAILOVER_READY, MATCH_FLOW)
)


def flow_series(series: Metric | RecordedSeries, *matchers: Matcher, part: str = "") -> Vector:
    """*series* of the selected flows."""
    return select(series, MATCH_FLOW, *matchers, part=part)


def recorded_series(series: RecordedSeries, *matchers: Matcher) -> Vector:
    """The latest sample of a recorded series, every 30 s or 5 minutes, of the selected flows."""
    slow = series in {BUDGET_REMAINING, *COVERAGE.values()} or series.name.endswith(
        (WINDOW, "step5m", *CHAIN_WINDOWS)
    )
    if slow:
        return over("last_over_time", series, _STEPS, MATCH_FLOW, *matchers)
    return flow_series(series, *matchers)


_SCRAPED_FLOWS: Final = either(
    *(select(FLOW_INFO, MATCH_FLOW, offset=offset) for offset in (0.0, _MEMORY))
)
SEEN_FLOWS: Final = aggregate("max", _SCRAPED_FLOWS, FLOW_LABELS)
"""The selected flows that are scraped now or were half an hour ago: cheaper than any time since."""


def max_by(found: Vector | Metric, *labels: str) -> Vector:
    """The maximum by *labels*, which merges replicas. A metric is read as its `flow_series`."""
    return aggregate("max", flow_series(found) if isinstance(found, Metric) else found, labels)


def min_by(found: Vector | Metric, *labels: str) -> Vector:
    """The minimum by *labels*; a metric is read as its `flow_series`."""
    return aggregate("min", flow_series(found) if isinstance(found, Metric) else found, labels)


def sum_by(vector: Vector, *labels: str) -> Vector:
    """The sum by *labels*."""
    return aggregate("sum", vector, labels)


def sum_over_steps(series: RecordedSeries, *matchers: Matcher) -> Vector:
    """The sum of a series of five-minute steps from one point to the next."""
    return over("sum_over_time", series, INTERVAL_VARIABLE, MATCH_FLOW, *matchers)


def readable_sli(vector: Vector) -> Vector:
    """*vector* with spaces in names of SLIs, without the tier of those that have only one.

    As in `data freshness` and `latency 10s`.
    """
    named = f'label_replace({vector}, "sli", "$1 $2", "sli", "(.+)_(.+)")'
    return Vector(f'label_replace({named}, "tier", "", "tier", "all|default")', vector.labels)


def rate_by(metric: Metric, *matchers: Matcher, by: Sequence[str], within: str) -> Vector:
    """Events a second by the labels *by*, with replicas counted once.

    *within* is the finest label that replicas share, as `topic`: the maximum over replicas is
    taken for each of its values, then summed.
    """
    fastest = max_by(over("rate", metric, RATE_VARIABLE, *matchers), *by, within)
    return sum_by(fastest, *by)


def increase_by(metric: Metric, *matchers: Matcher, by: Sequence[str]) -> Vector:
    """Events within the time range of the panel; the maximum over replicas.

    0 only where the flow is scraped now: a range function over a dead exporter returns 0 too.
    """
    risen = max_by(over("increase", metric, RANGE_VARIABLE, *matchers), *by)
    return Vector(f"({risen} > 0 or {risen} and on (flow) {flow_series(FLOW_INFO)})", risen.labels)


def lost_records(*matchers: Matcher, by: Sequence[str]) -> Vector:
    """Lost records within the time range of the panel, as MM2RecordsLost counts them."""
    metric = RETENTION_LOST_RECORDS_TOTAL
    now = max_by(select(metric, *matchers), *by)
    lost = continued_increase(now, metric, RANGE_VARIABLE, LOSS_LOOKBACK, *matchers)
    return Vector(f"({lost}\nor 0 * {now})", now.labels)


def topk(count: int, vector: Vector) -> Vector:
    """The *count* largest values."""
    return Vector(f"topk({count}, {vector})", vector.labels)


def bottomk(count: int, vector: Vector) -> Vector:
    """The *count* smallest values."""
    return Vector(f"bottomk({count}, {vector})", vector.labels)


def seconds_since(vector: Vector) -> Vector:
    """Seconds since the timestamps of *vector*, which are epoch seconds."""
    return Vector(f"time() - {vector}", vector.labels)


def in_milliseconds(vector: Vector) -> Vector:
    """*vector*, which is in epoch seconds, as Grafana takes times."""
    return Vector(f"1000 * {vector}", vector.labels)


def filter_by(vector: Vector, condition: str) -> Vector:
    """The samples of *vector* for which *condition* holds, as `== 1`."""
    return Vector(f"{vector} {condition}", vector.labels)


def histogram_quantile(share: float, buckets: Vector) -> Vector:
    """The quantile *share* of a histogram's *buckets*; absent, not NaN, without observations."""
    rest = tuple(label for label in buckets.labels if label != "le")
    return Vector(f"histogram_quantile({share:g}, {buckets}) >= 0", rest)


def state_code(
    metric: Metric, states: Sequence[StateMapping], *labels: str, matchers: Sequence[Matcher] = ()
) -> Vector:
    """The code of the current state; where replicas disagree, the highest one.

    States are in the label `state`, and the most severe has the highest code.
    """
    branches = (
        f"({max_by(select(metric, *matchers, equal('state', state.text)), *labels)} == 1)"
        f" * {state.code}"
        for state in sorted(states, key=lambda state: -state.code)
    )
    return Vector(" or ".join(branches), labels)


def count_states(code: Vector, states: Sequence[StateMapping]) -> Vector:
    """How many series of *code*, as of `state_code`, are in each state; by the label `state`."""
    counted = (
        f'label_replace(sum(({code}) == bool {state.code}), "state", "{state.text}", "", "")'
        for state in states
    )
    return Vector(" or ".join(counted), ("state",))


_OURS: Final = (matching("alertname", "MM2.+"), unequal("severity", "none"))
_OF_CLUSTERS: Final = "|".join(CLUSTER_ALERTS)

ALERT_KEYS: Final = ("severity", "alertname", "flow", "cluster", "sli", "topic", "group")
"""What distinguishes alerts on dashboards; others are merged, as both roles of a cluster."""

_WATCHDOG: Final = f"{ALERTS}{{{equal('alertstate', 'firing')}, {equal('alertname', WATCHDOG)}}}"


def flow_alerts() -> Vector:
    """Number of firing alerts by flow; 0 only while rules are evaluated."""
    firing = max_by(_firing(MATCH_FLOW), *ALERT_KEYS)
    none = f"0 * {max_by(SEEN_FLOWS, 'flow')} and on () {_WATCHDOG}"
    return Vector(f"{sum_by(firing, 'flow')} or {none}", ("flow",))


def severity_alerts(*severities: str) -> Vector:
    """Number of firing alerts by severity; 0 only while rules are evaluated."""
    none = (f'0 * label_replace({_WATCHDOG}, "severity", "{each}", "", "")' for each in severities)
    counted = Vector(" or ".join((*map(str, alerts_by_scope()), *none)), ALERT_KEYS)
    return sum_by(counted, "severity")


def alerts_by_scope() -> tuple[Vector, ...]:
    """Firing alerts of monitoring itself, of clusters, of flows and of objectives.

    A cause precedes its consequences.
    """
    return tuple(max_by(each, *ALERT_KEYS) for each in _firing_by_scope(SEEN_FLOWS))


def _firing_by_scope(flows: Vector) -> tuple[Vector, ...]:
    clusters = (
        f'label_replace({flows}, "cluster", "$1", "{end}", "(.+)")' for end in ("source", "target")
    )
    of_clusters = _firing(matching("alertname", _OF_CLUSTERS))
    return (
        _firing(equal("flow", ""), unmatching("alertname", _OF_CLUSTERS)),
        Vector(f"({of_clusters} and on (cluster) ({' or '.join(clusters)}))", ALERTS_LABELS),
        _firing(MATCH_FLOW, equal("sli", "")),
        _firing(MATCH_FLOW, unequal("sli", "")),
    )


def alert_starts(*labels: str) -> Vector:
    """When the firing alerts became active, in milliseconds since the epoch."""
    # A point while the flow is scraped is enough for the start.
    firing = either(*_firing_by_scope(flow_series(FLOW_INFO)))
    since = f"{ALERTS_FOR_STATE}{_text(_OURS)} and ignoring (alertstate) ({firing})"
    return in_milliseconds(min_by(Vector(since, ALERTS_LABELS), *labels))


def _firing(*matchers: Matcher) -> Vector:
    chosen = (equal("alertstate", "firing"), *_OURS, *matchers)
    return Vector(f"{ALERTS}{_text(chosen)}", ALERTS_LABELS)


def _text(matchers: tuple[Matcher, ...]) -> str:
    return f"{{{', '.join(map(str, matchers))}}}"
