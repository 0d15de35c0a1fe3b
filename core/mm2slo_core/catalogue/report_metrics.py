"""Metrics of the report service."""

from types import MappingProxyType

from mm2slo_core.catalogue._metric_factories import MetricSubject
from mm2slo_core.catalogue.audit_result_metrics import AUDITS

REPORT_SERVICE = MetricSubject("Report service")
REPORT_BUILD_INFO = REPORT_SERVICE.gauge(
    "mm2_report_build_info",
    "Always 1; the label is the running version.",
    ("version",),
    per_flow=False,
)
REPORT_REQUESTS_TOTAL = REPORT_SERVICE.counter(
    "mm2_report_requests_total",
    "HTTP requests by route and status code.",
    ("route", "status"),
    per_flow=False,
)
REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS = REPORT_SERVICE.gauge(
    "mm2_report_recorded_until_timestamp_seconds",
    "End of the newest step in the embedded history.",
    unit="seconds",
    per_flow=False,
)
REPORT_SCRAPES_TOTAL = REPORT_SERVICE.counter(
    "mm2_report_scrapes_total",
    "Scrapes of the exporter for the embedded history.",
    ("exporter",),
    per_flow=False,
)
REPORT_SCRAPE_FAILURES_TOTAL = REPORT_SERVICE.counter(
    "mm2_report_scrape_failures_total",
    "Failed scrapes of the exporter for the embedded history.",
    ("exporter",),
    per_flow=False,
)

REPORT_GROUPS = MappingProxyType(
    {subject.title: subject.metrics for subject in (AUDITS, REPORT_SERVICE)}
)
"""Metrics of the report service except `process_` metrics, by subject."""
