"""Metrics of Prometheus and Alertmanager that rules and dashboards use."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue.metric import FLOW_LABELS, Metric, MetricType

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
GROUP_DURATION: Final = Metric(
    name="prometheus_rule_group_last_duration_seconds",
    type=MetricType.GAUGE,
    help="Duration of the last evaluation of the rule group.",
    labels=("rule_group",),
    unit="seconds",
)
GROUP_INTERVAL: Final = Metric(
    name="prometheus_rule_group_interval_seconds",
    type=MetricType.GAUGE,
    help="Evaluation interval of the rule group.",
    labels=("rule_group",),
    unit="seconds",
)
NOTIFICATIONS: Final = Metric(
    name="alertmanager_notifications_total",
    type=MetricType.COUNTER,
    help="Attempted notifications of Alertmanager.",
    labels=("integration",),
)
EXTERNAL: Final = (
    UP,
    RULE_FAILURES,
    ITERATIONS_MISSED,
    GROUP_DURATION,
    GROUP_INTERVAL,
    NOTIFICATIONS_FAILED,
    NOTIFICATIONS,
)
"""All external metrics."""

ALERTS: Final = "ALERTS"
"""Prometheus's series of alerts: 1 for each that is pending or firing."""
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
