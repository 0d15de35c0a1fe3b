"""Prometheus, Alertmanager and receivers of their messages, as local processes.

`monitoring` starts all of them from the generated files; each can be started alone. They listen on
free loopback ports, and end with their context or with this process.
"""

from mm2slo_lab.lab_monitoring import Prometheus
from monitoring.alertmanager import Alertmanager, alert, alertmanager
from monitoring.history_blocks import write_history_blocks
from monitoring.monitoring_stack import Monitoring, monitoring
from monitoring.own_metrics import own_metrics
from monitoring.prometheus import prometheus
from monitoring.webhook_receiver import WebhookReceiver

__all__ = [
    "Alertmanager",
    "Monitoring",
    "Prometheus",
    "WebhookReceiver",
    "alert",
    "alertmanager",
    "monitoring",
    "own_metrics",
    "prometheus",
    "write_history_blocks",
]
