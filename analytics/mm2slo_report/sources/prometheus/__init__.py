"""Counts of events from Prometheus."""

from mm2slo_report.sources.prometheus.api import PrometheusClient, Server
from mm2slo_report.sources.prometheus.source import PrometheusSource

__all__ = ["PrometheusClient", "PrometheusSource", "Server"]
