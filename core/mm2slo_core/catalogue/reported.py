"""Metrics of the report service: what audits found, and the service itself."""

from types import MappingProxyType

from mm2slo_core.catalogue._declare import counter, gauge

AUDIT_RUNS = gauge(
    "mm2_audit_runs",
    "Audit runs in the results store, by state: running, finished or failed.",
    ("state",),
    per_flow=False,
)
AUDIT_LAST_RUN_TIMESTAMP_SECONDS = gauge(
    "mm2_audit_last_run_timestamp_seconds",
    "Time at which the flow's newest finished audit ended.",
    unit="seconds",
)
AUDIT_WINDOW_END_TIMESTAMP_SECONDS = gauge(
    "mm2_audit_window_end_timestamp_seconds",
    "End of the window that the flow's newest finished audit judged.",
    unit="seconds",
)
AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS = gauge(
    "mm2_audit_complete_up_to_timestamp_seconds",
    "Time up to which the flow's newest finished audit found everything complete.",
    unit="seconds",
)
AUDIT_RECORDS = gauge(
    "mm2_audit_records",
    "Records that the flow's newest finished audit judged, by verdict.",
    ("verdict",),
    unit="records",
)
AUDIT_FAULTS_RECORDS = gauge(
    "mm2_audit_faults_records",
    "Records that the flow's newest finished audit found at fault: lost, overdue, expired, moved "
    "or altered.",
    unit="records",
)
AUDIT_UNAUDITED_TOPICS = gauge(
    "mm2_audit_unaudited_topics",
    "Topics that the flow's newest finished audit could not judge.",
)
REPORT_BUILD_INFO = gauge(
    "mm2_report_build_info", "Always 1; the running version.", ("version",), per_flow=False
)
REPORT_REQUESTS_TOTAL = counter(
    "mm2_report_requests_total",
    "Requests that the report service answered, by route and HTTP status.",
    ("route", "status"),
    per_flow=False,
)
REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS = gauge(
    "mm2_report_recorded_until_timestamp_seconds",
    "End of the newest minute of the embedded history.",
    unit="seconds",
    per_flow=False,
)
REPORT_SCRAPES_TOTAL = counter(
    "mm2_report_scrapes_total",
    "Scrapes of the exporter for the embedded history.",
    ("exporter",),
    per_flow=False,
)
REPORT_SCRAPE_FAILURES_TOTAL = counter(
    "mm2_report_scrape_failures_total",
    "Scrapes of the exporter for the embedded history that failed.",
    ("exporter",),
    per_flow=False,
)

REPORT_GROUPS = MappingProxyType(
    {
        "Audits": (
            AUDIT_RUNS,
            AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
            AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
            AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
            AUDIT_RECORDS,
            AUDIT_FAULTS_RECORDS,
            AUDIT_UNAUDITED_TOPICS,
        ),
        "Report service": (
            REPORT_BUILD_INFO,
            REPORT_REQUESTS_TOTAL,
            REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS,
            REPORT_SCRAPES_TOTAL,
            REPORT_SCRAPE_FAILURES_TOTAL,
        ),
    }
)
"""What the report service publishes beside the `process_` metrics, by subject."""
