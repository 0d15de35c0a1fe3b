"""Prometheus, Alertmanager and the receivers of their messages, as real processes on this machine.

`monitoring` starts all of them from the generated files; each part can be had alone. Ports are
free ones on the loopback address, and every process ends with its context, or with this program.
"""

from mm2slo_lab.monitoring import Prometheus
from monitoring.alertmanager import Alertmanager, alert, alertmanager
from monitoring.blocks import write_days
from monitoring.own import own
from monitoring.prometheus import prometheus
from monitoring.together import Monitoring, monitoring
from monitoring.webhook import WebhookReceiver

__all__ = [
    "Alertmanager",
    "Monitoring",
    "Prometheus",
    "WebhookReceiver",
    "alert",
    "alertmanager",
    "monitoring",
    "own",
    "prometheus",
    "write_days",
]
