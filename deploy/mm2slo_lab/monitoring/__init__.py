"""Prometheus and Alertmanager processes for the lab.

Rules, routes and templates are passed as text. Raises LabError if a program is not installed.
"""

from mm2slo_lab.monitoring.alertmanager import Alertmanager, alertmanager
from mm2slo_lab.monitoring.monitoring_server import find_program, is_installed
from mm2slo_lab.monitoring.prometheus import Cadence, Prometheus, prometheus

__all__ = [
    "Alertmanager",
    "Cadence",
    "Prometheus",
    "alertmanager",
    "find_program",
    "is_installed",
    "prometheus",
]
