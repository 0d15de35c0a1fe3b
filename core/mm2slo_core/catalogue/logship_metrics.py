"""Metrics of `mm2slo logship`."""

from types import MappingProxyType

from mm2slo_core.catalogue._metric_factories import MetricSubject

LOG_SHIPPING = MetricSubject("Log shipping")
LOGSHIP_EVENTS_READ_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_events_read_total", "Events read from log files.", per_flow=False
)
LOGSHIP_EVENTS_SENT_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_events_sent_total", "Events that Splunk accepted.", per_flow=False
)
LOGSHIP_DEAD_LETTERS_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_dead_letters_total",
    "Events that Splunk rejected as invalid, by HEC code (none: a request that is too large).",
    ("code",),
    per_flow=False,
)
LOGSHIP_DEAD_LETTERS_DROPPED_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_dead_letters_dropped_total",
    "Dead letters that were deleted because `logship.max_dead_letter_bytes` was reached.",
    per_flow=False,
)
LOGSHIP_LOST_FILES_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_lost_files_total",
    "Files that were truncated, or deleted before all of their events were accepted.",
    ("reason",),
    per_flow=False,
)
LOGSHIP_LOST_BYTES_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_lost_bytes_total",
    "Bytes of log files that are known to be lost.",
    ("reason",),
    per_flow=False,
)
LOGSHIP_REDACTIONS_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_redactions_total",
    "Secrets that were redacted, by pattern.",
    ("pattern",),
    per_flow=False,
)
LOGSHIP_REQUESTS_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_requests_total",
    "Requests with events, by HTTP status (0: no response) and HEC code.",
    ("status", "code"),
    per_flow=False,
)
LOGSHIP_REQUEST_DURATION_SECONDS = LOG_SHIPPING.histogram(
    "mm2_logship_request_duration_seconds",
    "Time until the response to a request with events.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    per_flow=False,
)
LOGSHIP_POSSIBLE_DUPLICATES_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_possible_duplicates_total",
    "Events that were sent again although Splunk may have accepted them.",
    per_flow=False,
)
LOGSHIP_UNSENT_BYTES = LOG_SHIPPING.gauge(
    "mm2_logship_unsent_bytes",
    "Bytes of log files that are not accepted yet.",
    unit="bytes",
    per_flow=False,
)
LOGSHIP_SEND_LAG_SECONDS = LOG_SHIPPING.gauge(
    "mm2_logship_send_lag_seconds",
    "Time since the oldest event was read that is not accepted yet.",
    unit="seconds",
    per_flow=False,
)
LOGSHIP_PENDING_ACKS = LOG_SHIPPING.gauge(
    "mm2_logship_pending_acks",
    "Requests that Splunk accepted but did not acknowledge yet.",
    per_flow=False,
)
LOGSHIP_HOLD = LOG_SHIPPING.gauge(
    "mm2_logship_hold",
    "1 while nothing is sent to an index because the configuration is rejected; by HEC code.",
    ("index", "code"),
    per_flow=False,
)
LOGSHIP_FILES = LOG_SHIPPING.gauge("mm2_logship_files", "Open log files.", per_flow=False)
LOGSHIP_UNREADABLE_FILES = LOG_SHIPPING.gauge(
    "mm2_logship_unreadable_files", "Log files that cannot be read.", per_flow=False
)
LOGSHIP_LAST_SUCCESS_TIMESTAMP_SECONDS = LOG_SHIPPING.gauge(
    "mm2_logship_last_success_timestamp_seconds",
    "Time of the last accepted request.",
    unit="seconds",
    per_flow=False,
)

LOGSHIP_GROUPS = MappingProxyType({LOG_SHIPPING.title: LOG_SHIPPING.metrics})
"""Metrics of `mm2slo logship` except `process_` metrics."""
