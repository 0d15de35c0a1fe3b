"""Metrics of Prometheus and Alertmanager about themselves, declared like our own."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue import Metric, MetricType

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
