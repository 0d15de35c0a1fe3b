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
