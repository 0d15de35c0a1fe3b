"""Series that no service of mm2slo exposes: those of the recording rules and of Prometheus.

The level of a recorded series is `flow:` or `cluster:`. Names contain the window without
scaling.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mm2slo_core.catalogue.metric import FLOW_LABELS, Metric, MetricType

SLI_LABELS: Final = (*FLOW_LABELS, "sli", "tier")
"""Labels of the recorded series of an indicator."""

DIRECT_WINDOWS: Final = ("5m", "1h")
"""Increases of the counters, recorded every 30 seconds."""

CHAIN_WINDOWS: Final = ("2h", "6h", "1d", "3d")
"""Sums of 5-minute increments, recorded every 5 minutes."""

WINDOW: Final = "_window"
"""The suffix of series over the window of the objective."""

LONG_WINDOWS: Final = ("1h", "6h", "1d", "3d")
"""The long windows of the window pairs: their burn rates are shares of the budget of the whole
window, however little of it was measured."""

WINDOW_SECONDS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "5m": 300.0,
        "1h": 3_600.0,
        "2h": 7_200.0,
        "6h": 21_600.0,
        "1d": 86_400.0,
        "3d": 259_200.0,
    }
)
"""Seconds by window name."""
# level:metric:operations, as Prometheus recommends for recording rules.
_NAME = re.compile(r"[a-z]+:[a-z][a-z0-9_]*:[a-z][a-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSeries:
    name: str
    help: str
    labels: tuple[str, ...] = SLI_LABELS

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(
                f"recorded series has the name {self.name!r}; expected level:metric:operation"
            )


def _by_window(name: str, text: str, windows: tuple[str, ...]) -> Mapping[str, RecordedSeries]:
    """One series per window, which replaces `{window}` in *text*."""
    return MappingProxyType(
        {
            window: RecordedSeries(
                name=f"{name}{window}",
                help=text.format(
                    window="the window of the objective"
                    if window == WINDOW
                    else f"the last {window}"
                ),
            )
            for window in windows
        }
    )


_ALL_WINDOWS = (*DIRECT_WINDOWS, *CHAIN_WINDOWS, WINDOW)

MAINTENANCE_ACTIVE: Final = RecordedSeries(
    name="flow:mm2_maintenance:active",
    help="1 during planned maintenance of the flow; otherwise absent.",
    labels=FLOW_LABELS,
)

SETTLES: Final = 120.0
"""Seconds after planned maintenance in which its events still settle: a canary sent at its end has
a deadline, 60 s by default, and is scraped after that."""

OBJECTIVE: Final = RecordedSeries(
    name="flow:mm2_slo_objective:ratio",
    help="Share of events that must be good; `severity` is the highest severity of its alerts.",
    labels=(*SLI_LABELS, "severity", "owner", "channel"),
)

OBJECTIVE_WINDOW: Final = RecordedSeries(
    name="flow:mm2_slo_window:seconds", help="Length of the rolling window of the objective."
)

EVENTS_INCREASE: Final = _by_window(
    "flow:mm2_sli_events:increase",
    "Settled events of {window}, averaged over replicas of the exporter, without maintenance.",
    DIRECT_WINDOWS,
)

BAD_INCREASE: Final = _by_window(
    "flow:mm2_sli_bad:increase",
    "Bad events of {window}, averaged over replicas of the exporter, without maintenance.",
    DIRECT_WINDOWS,
)

EVENTS_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_events:step5m", help="Settled events of a step, without maintenance."
)

BAD_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_bad:step5m", help="Bad events of a step, without maintenance."
)

UNKNOWN_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_unknown:step5m",
    help="Events of a step that could not be measured, without maintenance.",
)

EXCLUDED_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_excluded:step5m",
    help="Settled events of a step that maintenance excludes; absent without maintenance.",
)

DUE_STEP: Final = RecordedSeries(
    name="flow:mm2_slo_due:step5m",
    help="1 for each step in which a sample is expected: the indicator has an objective, had one "
    "a step before, and is not in maintenance.",
)

EVENTS_SUM: Final = _by_window(
    "flow:mm2_sli_events:sum", "Settled events of {window}.", (*CHAIN_WINDOWS, WINDOW)
)

BAD_SUM: Final = _by_window(
    "flow:mm2_sli_bad:sum", "Bad events of {window}.", (*CHAIN_WINDOWS, WINDOW)
)

MEASURED: Final = _by_window(
    "flow:mm2_sli_measured:count",
    "Steps of {window} with samples, without maintenance; of 30 seconds for 1h, otherwise of five "
    "minutes.",
    (*LONG_WINDOWS, WINDOW),
)

ERROR: Final = _by_window(
    "flow:mm2_slo_error:ratio",
    "Error ratio of {window}; absent without events.",
    _ALL_WINDOWS,
)

BURN: Final = _by_window(
    "flow:mm2_slo_burn:ratio",
    "Burn rate of {window}: error ratio divided by the error budget; for the long windows of "
    "window pairs and the window of the objective, times the measured share of the window.",
    _ALL_WINDOWS,
)

BUDGET_REMAINING: Final = RecordedSeries(
    name="flow:mm2_slo_budget_remaining:ratio",
    help="Remaining share of the error budget of the whole window; below 0 when overspent.",
)

COVERAGE: Final = _by_window(
    "flow:mm2_slo_coverage:ratio",
    "Known share of the events of {window}, times the share of steps with samples.",
    ("1h", WINDOW),
)

CLUSTER_UNREACHABLE: Final = RecordedSeries(
    name="cluster:mm2_cluster_unreachable:since_timestamp_seconds",
    help="Start of the outage of a cluster that does not answer, per role in its flows; outages "
    "within two minutes have the start of the first. Otherwise absent.",
    labels=("cluster", "source", "target"),
)

FLOW_UNREACHABLE: Final = RecordedSeries(
    name="flow:mm2_flow_unreachable:active",
    help="1 while the source or the target of the flow does not answer; otherwise absent.",
    labels=FLOW_LABELS,
)

FLOW_STOPPED: Final = RecordedSeries(
    name="flow:mm2_flow_stopped:since_timestamp_seconds",
    help="Start of the stop of a flow that has been stopped for a minute, and after it of each "
    "further stop within 90 s; otherwise absent.",
    labels=FLOW_LABELS,
)

FLOW_RECOVERING: Final = RecordedSeries(
    name="flow:mm2_flow_recovering:lag_seconds",
    help="Age of the oldest unreplicated record of a flow that was stopped or unreachable within "
    "three hours, while it is above the freshness threshold and falling; otherwise absent.",
    labels=FLOW_LABELS,
)

FLOW_SEEN: Final = RecordedSeries(
    name="flow:mm2_flow_seen:timestamp_seconds",
    help="Time of the last scrape with the flow, for a week after it; only in rules that are not "
    "generated for a configuration.",
    labels=FLOW_LABELS,
)

RECORDED_GROUPS: Final[Mapping[str, tuple[RecordedSeries, ...]]] = MappingProxyType(
    {
        "Objectives": (OBJECTIVE, OBJECTIVE_WINDOW, MAINTENANCE_ACTIVE),
        "Short windows": (*EVENTS_INCREASE.values(), *BAD_INCREASE.values()),
        "Steps of five minutes": (EVENTS_STEP, BAD_STEP, UNKNOWN_STEP, EXCLUDED_STEP, DUE_STEP),
        "Long windows": (*EVENTS_SUM.values(), *BAD_SUM.values(), *MEASURED.values()),
        "Flows": (FLOW_STOPPED, FLOW_UNREACHABLE, FLOW_RECOVERING, FLOW_SEEN),
        "Clusters": (CLUSTER_UNREACHABLE,),
        "Results": (*ERROR.values(), *BURN.values(), BUDGET_REMAINING, *COVERAGE.values()),
    }
)
"""By subject, in the order of the documentation."""

RECORDED: Final = tuple(series for group in RECORDED_GROUPS.values() for series in group)
"""All recorded series."""

UP: Final = Metric(
    name="up", type=MetricType.GAUGE, help="1 if the last scrape of the target succeeded, else 0."
)

RULE_FAILURES: Final = Metric(
    name="prometheus_rule_evaluation_failures_total",
    type=MetricType.COUNTER,
    help="Failed rule evaluations.",
    labels=("rule_group",),
)

ITERATIONS_MISSED: Final = Metric(
    name="prometheus_rule_group_iterations_missed_total",
    type=MetricType.COUNTER,
    help="Skipped rule group evaluations because the previous one was still running.",
    labels=("rule_group",),
)

NOTIFICATIONS_FAILED: Final = Metric(
    name="alertmanager_notifications_failed_total",
    type=MetricType.COUNTER,
    help="Failed notifications of Alertmanager.",
    labels=("integration",),
)

EXTERNAL: Final = (
    UP,
    RULE_FAILURES,
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
)
"""All external metrics."""

ALERTS: Final = "ALERTS"
"""Prometheus's series of alerts: 1 for each that is pending or firing."""

ALERTS_FOR_STATE: Final = "ALERTS_FOR_STATE"
"""Prometheus's series of alerts: since when each is pending or firing, in epoch seconds."""

CLUSTER_ALERTS: Final = ("MM2ClusterUnreachable", "MM2CollectionFailing")
"""Alerts whose label `cluster` is a Kafka cluster; others may have one that Prometheus adds."""

WATCHDOG: Final = "MM2Watchdog"
"""The alert that fires as long as rules are evaluated."""

ALERTS_LABELS: Final = (
    "alertname",
    "alertstate",
    "severity",
    *FLOW_LABELS,
    "cluster",
    "sli",
    "tier",
    "topic",
    "group",
)
"""The labels of `ALERTS` that alerts of mm2slo may have."""
