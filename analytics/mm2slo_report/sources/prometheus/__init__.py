"""Counts of events from Prometheus."""

from mm2slo_report.sources.prometheus.api import PrometheusClient
from mm2slo_report.sources.prometheus.source import PrometheusSource

__all__ = ["PrometheusClient", "PrometheusSource"]
