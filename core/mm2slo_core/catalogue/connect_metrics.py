"""Metrics of MirrorMaker 2's connectors and tasks, from Connect's status topic."""

from mm2slo_core.catalogue._metric_factories import MetricSubject

CONNECT = MetricSubject("Connectors and tasks")
CONNECTOR_STATE = CONNECT.gauge(
    "mm2_connector_state",
    "1 for the state the connector reports, 0 for the others.",
    ("connector", "state"),
)
TASK_STATE = CONNECT.gauge(
    "mm2_task_state",
    "1 for the state the task reports, 0 for the others.",
    ("connector", "task", "state"),
)
