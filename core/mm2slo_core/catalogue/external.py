"""Series that Prometheus and Alertmanager make themselves, declared like our own."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue.model import FLOW_LABELS, Metric, MetricType

UP: Final = Metric(
    name="up", type=MetricType.GAUGE, help="1 when the last scrape of the target succeeded, else 0."
)
RULE_FAILURES: Final = Metric(
    name="prometheus_rule_evaluation_failures_total",
    type=MetricType.COUNTER,
    help="Evaluations of rules that failed.",
    labels=("rule_group",),
)
ITERATIONS_MISSED: Final = Metric(
    name="prometheus_rule_group_iterations_missed_total",
    type=MetricType.COUNTER,
    help="Evaluations of rule groups that were left out, the one before being still under way.",
    labels=("rule_group",),
)
NOTIFICATIONS_FAILED: Final = Metric(
    name="alertmanager_notifications_failed_total",
    type=MetricType.COUNTER,
    help="Messages that Alertmanager gave up sending.",
    labels=("integration",),
)
GROUP_DURATION: Final = Metric(
    name="prometheus_rule_group_last_duration_seconds",
    type=MetricType.GAUGE,
    help="Duration of the newest evaluation of the rule group.",
    labels=("rule_group",),
    unit="seconds",
)
GROUP_INTERVAL: Final = Metric(
    name="prometheus_rule_group_interval_seconds",
    type=MetricType.GAUGE,
    help="How often the rule group is evaluated.",
    labels=("rule_group",),
    unit="seconds",
)
NOTIFICATIONS: Final = Metric(
    name="alertmanager_notifications_total",
    type=MetricType.COUNTER,
    help="Messages that Alertmanager tried to send.",
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
"""Every metric of others that rules or dashboards read."""

ALERTS: Final = "ALERTS"
"""Prometheus's own series of alerts: 1 for each that is pending or fires."""
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
"""Those of its labels that our alerts may have."""
