"""Prometheus and Alertmanager beside the lab: real processes on loopback, ended with the lab.

Rules, routes and templates are handed in as text. What is not installed is said as `LabError`.
"""

from mm2slo_lab.monitoring.alertmanager import Alertmanager, alertmanager
from mm2slo_lab.monitoring.prometheus import Cadence, Prometheus, prometheus
from mm2slo_lab.monitoring.serving import installed, program

__all__ = [
    "Alertmanager",
    "Cadence",
    "Prometheus",
    "alertmanager",
    "installed",
    "program",
    "prometheus",
]
