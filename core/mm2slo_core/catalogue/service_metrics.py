"""Metrics of mm2slo's services: exporter and process, report service, audit results, logship.

Audit results are those of the latest finished audit of each flow; the report service publishes
them. Values with bounds have the label `bound`: `estimate`, `lower` or `upper`; an unknown bound
has no series.
"""

from enum import StrEnum
from types import MappingProxyType

from mm2slo_core.catalogue.metric import COLLECT_BUCKETS, MetricSubject

_STAGE = ("cluster", "stage")
EXPORTER = MetricSubject("Exporter", per_flow=False)

EXPORTER_BUILD_INFO = EXPORTER.gauge(
    "mm2_exporter_build_info",
    "Always 1; the label is the running version.",
    ("version",),
)

EXPORTER_COLLECT_DURATION_SECONDS = EXPORTER.histogram(
    "mm2_exporter_collect_duration_seconds",
    "Duration of a collection stage on a cluster, including failures.",
    _STAGE,
    buckets=COLLECT_BUCKETS,
)

EXPORTER_COLLECT_ERRORS_TOTAL = EXPORTER.counter(
    "mm2_exporter_collect_errors_total",
    "Failed collection stages, by reason.",
    (*_STAGE, "reason"),
)

EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS = EXPORTER.gauge(
    "mm2_exporter_last_success_timestamp_seconds",
    "Time of the last success of the collection stage.",
    _STAGE,
)

EXPORTER_KAFKA_REQUESTS_TOTAL = EXPORTER.counter(
    "mm2_exporter_kafka_requests_total",
    "Kafka requests sent to the cluster, by API.",
    ("cluster", "api"),
)

EXPORTER_MALFORMED_RECORDS_TOTAL = EXPORTER.counter(
    "mm2_exporter_malformed_records_total",
    "Records of internal topics that could not be decoded.",
    ("cluster", "kind", "reason"),
)

EXPORTER_LOOP_FAILURES_TOTAL = EXPORTER.counter(
    "mm2_exporter_loop_failures_total",
    "Unexpected exceptions in background loops; each restarts the loop.",
    ("loop",),
)

EXPORTER_SKIPPED_ROUNDS_TOTAL = EXPORTER.counter(
    "mm2_exporter_skipped_rounds_total",
    "Rounds of the flow that were not evaluated, because a newer one was read first.",
    per_flow=True,
)

EXPORTER_HIDDEN_GROUPS = EXPORTER.gauge(
    "mm2_exporter_hidden_groups",
    "Consumer groups without series of their own, by exporter.group_series or the series limit.",
    per_flow=True,
)

EXPORTER_FLOW_READY = EXPORTER.gauge(
    "mm2_exporter_flow_ready",
    "1 if all data of the flow has been read at least once, else 0.",
    per_flow=True,
)

EXPORTER_SERIES = EXPORTER.gauge(
    "mm2_exporter_series", "Series in the latest snapshot, including this one."
)

EXPORTER_GRANULARITY = EXPORTER.gauge(
    "mm2_exporter_granularity",
    "1 for the effective granularity (flow, topic or partition), 0 for the others; "
    "coarser than configured if the series limit is exceeded.",
    ("granularity",),
)

EXPORTER_TIMELINE_WRITER = EXPORTER.gauge(
    "mm2_exporter_timeline_writer",
    "1 if this exporter writes the watermark timeline of the flow, else 0.",
    per_flow=True,
)

EXPORTER_TIMELINE_BYTES_TOTAL = EXPORTER.counter(
    "mm2_exporter_timeline_bytes_total",
    "Bytes of keys and values written to the watermark timeline.",
    per_flow=True,
)

EXPORTER_TIMELINE_RECORDS_TOTAL = EXPORTER.counter(
    "mm2_exporter_timeline_records_total",
    "Records written to the watermark timeline.",
    per_flow=True,
)

EXPORTER_TOPICS_INTERVAL_SECONDS = EXPORTER.gauge(
    "mm2_exporter_topics_interval_seconds",
    "Interval between listings of a cluster's topics and partitions: 4 for up to 2,000 topics, "
    "above that the interval at which they take 2 % of a core.",
    ("cluster",),
)

EXPORTER_ARRIVAL_BRACKET_SECONDS = EXPORTER.gauge(
    "mm2_exporter_arrival_bracket_seconds",
    "Width of the brackets of arrival times on the target, by which audits bound latency: the "
    "interval between two reads of end offsets plus a response time. More than 0.3 above 1,000 "
    "partitions of the target or a round trip of 50 ms; the poll interval above 5,000 partitions "
    "or while some cannot be read. Published by the writer of the timeline.",
    per_flow=True,
)

EXPORTER_HISTORY_START_TIMESTAMP_SECONDS = EXPORTER.gauge(
    "mm2_exporter_history_start_timestamp_seconds",
    "Time from which on the arrivals of unreplicated records are known: the start of the exporter, "
    "or how far back it has read the watermark timeline.",
    per_flow=True,
)

EXPORTER_RENDER_DURATION_SECONDS = EXPORTER.gauge(
    "mm2_exporter_render_duration_seconds",
    "Duration of the last rendering of the exposition.",
)

EXPORTER_CYCLE_DURATION_SECONDS = EXPORTER.gauge(
    "mm2_exporter_cycle_duration_seconds",
    "Duration of the last evaluation cycle, including rendering.",
)

EXPORTER_CONFIG_RELOADS_TOTAL = EXPORTER.counter(
    "mm2_exporter_config_reloads_total",
    "Configuration reloads, by result: success or failure.",
    ("result",),
)
PROCESS = MetricSubject("Process", per_flow=False)

PROCESS_RESIDENT_MEMORY_BYTES = PROCESS.gauge(
    "process_resident_memory_bytes", "Resident memory size."
)

PROCESS_CPU_SECONDS_TOTAL = PROCESS.counter(
    "process_cpu_seconds_total",
    "Total user and system CPU time spent.",
)

PROCESS_START_TIME_SECONDS = PROCESS.gauge(
    "process_start_time_seconds",
    "Start time of the process since the epoch.",
)

PROCESS_VIRTUAL_MEMORY_BYTES = PROCESS.gauge("process_virtual_memory_bytes", "Virtual memory size.")
PROCESS_OPEN_FDS = PROCESS.gauge("process_open_fds", "Open file descriptors.")

PROCESS_MAX_FDS = PROCESS.gauge("process_max_fds", "Limit of open file descriptors.")

PYTHON_INFO = PROCESS.gauge(
    "python_info",
    "Always 1; the labels are the version of Python.",
    ("version", "implementation", "major", "minor", "patchlevel"),
)
REPORT_SERVICE = MetricSubject("Report service", per_flow=False)

REPORT_BUILD_INFO = REPORT_SERVICE.gauge(
    "mm2_report_build_info",
    "Always 1; the label is the running version.",
    ("version",),
)

REPORT_REQUESTS_TOTAL = REPORT_SERVICE.counter(
    "mm2_report_requests_total",
    "HTTP requests by route and status code.",
    ("route", "status"),
)

REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS = REPORT_SERVICE.gauge(
    "mm2_report_recorded_until_timestamp_seconds",
    "End of the newest step in the embedded history.",
)

REPORT_SCRAPES_TOTAL = REPORT_SERVICE.counter(
    "mm2_report_scrapes_total",
    "Scrapes of the exporter for the embedded history.",
    ("exporter",),
)

REPORT_SCRAPE_FAILURES_TOTAL = REPORT_SERVICE.counter(
    "mm2_report_scrape_failures_total",
    "Failed scrapes of the exporter for the embedded history.",
    ("exporter",),
)
AUDITS = MetricSubject("Audits")


class Bound(StrEnum):
    """Value of the label `bound`."""

    ESTIMATE = "estimate"
    LOWER = "lower"
    UPPER = "upper"


class KeyProperty(StrEnum):
    """Value of the label `property`: what is violated for a key."""

    AFFINITY = "affinity"
    ORDER = "order"


class LatencyMeasure(StrEnum):
    """Value of the label `measure`: how latency is measured."""

    END_TO_END = "end-to-end"
    TRANSFER = "transfer"


AUDIT_RUNS = AUDITS.gauge(
    "mm2_audit_runs",
    "Audit runs in the results store, by state: running, finished or failed.",
    ("state",),
    per_flow=False,
)

AUDIT_LAST_RUN_TIMESTAMP_SECONDS = AUDITS.gauge(
    "mm2_audit_last_run_timestamp_seconds",
    "End time of the latest finished audit of the flow.",
)

AUDIT_WINDOW_END_TIMESTAMP_SECONDS = AUDITS.gauge(
    "mm2_audit_window_end_timestamp_seconds",
    "End of the window of the latest finished audit of the flow.",
)

AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS = AUDITS.gauge(
    "mm2_audit_complete_up_to_timestamp_seconds",
    "Time up to which the latest finished audit of the flow found all records complete.",
)

AUDIT_RECORDS = AUDITS.gauge(
    "mm2_audit_records",
    "Records of the latest finished audit of the flow, by verdict.",
    ("verdict",),
)

AUDIT_FAULTS_RECORDS = AUDITS.gauge(
    "mm2_audit_faults_records",
    "Faulty records of the latest finished audit of the flow: lost, overdue, expired, moved, "
    "altered or unmasked.",
)

AUDIT_UNAUDITED_TOPICS = AUDITS.gauge(
    "mm2_audit_unaudited_topics",
    "Topics that the latest finished audit of the flow could not audit.",
)

AUDIT_SAMPLED_RATIO = AUDITS.gauge(
    "mm2_audit_sampled_ratio",
    "Share of records that the latest finished audit of the flow sampled; 1 is a census.",
)

AUDIT_RECORD_SIZE_BYTES = AUDITS.gauge(
    "mm2_audit_record_size_bytes",
    "Mean size of the source records in the latest finished audit of the flow: key, value and "
    "headers, uncompressed, in topics without unauditable records.",
)

AUDIT_RECORDS_RATIO = AUDITS.gauge(
    "mm2_audit_records_ratio",
    "Share of lost (with overdue), altered and moved records, and of replicated records with "
    "duplicates (including replays), in the latest finished audit of the flow: estimate, and 95 % "
    "bounds for all records (Clopper-Pearson; equal in a census). A sample counts altered records "
    "as lost.",
    ("verdict", "bound"),
)

AUDIT_KEYS_RATIO = AUDITS.gauge(
    "mm2_audit_keys_ratio",
    "Share of keys whose affinity or order is violated, in the latest finished audit of the flow: "
    "estimate, and 95 % bounds for all keys (Clopper-Pearson; equal in a census; unknown for a "
    "sample of several topics, which may share keys).",
    ("property", "bound"),
)

AUDIT_LATENCY_SECONDS = AUDITS.gauge(
    "mm2_audit_latency_seconds",
    "Latency percentiles of the latest finished audit of the flow, lower and upper bound: "
    "end-to-end (producer timestamp to arrival on the target; not for sources with LogAppendTime) "
    "and transfer (arrival to arrival), over the topics that no other flow replicates.",
    ("measure", "percentile", "bound"),
)

AUDIT_EVIDENCE_RECORDS = AUDITS.gauge(
    "mm2_audit_evidence_records",
    "Anomalies with evidence in the latest finished audit of the flow, by verdict.",
    ("verdict",),
)

AUDIT_UNEVIDENCED_RECORDS = AUDITS.gauge(
    "mm2_audit_unevidenced_records",
    "Anomalies without evidence in the latest finished audit of the flow, by verdict; evidence is "
    "limited per topic and verdict.",
    ("verdict",),
)
LOG_SHIPPING = MetricSubject("Log shipping", per_flow=False)

LOGSHIP_EVENTS_READ_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_events_read_total", "Events read from log files."
)

LOGSHIP_EVENTS_SENT_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_events_sent_total", "Events that Splunk accepted."
)

LOGSHIP_DEAD_LETTERS_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_dead_letters_total",
    "Events that Splunk rejected as invalid, by HEC code (none: a request that is too large).",
    ("code",),
)

LOGSHIP_DEAD_LETTERS_DROPPED_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_dead_letters_dropped_total",
    "Dead letters that were deleted because `logship.max_dead_letter_bytes` was reached.",
)

LOGSHIP_LOST_FILES_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_lost_files_total",
    "Files that were truncated, or deleted before all of their events were accepted.",
    ("reason",),
)

LOGSHIP_LOST_BYTES_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_lost_bytes_total",
    "Bytes of log files that are known to be lost.",
    ("reason",),
)

LOGSHIP_REDACTIONS_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_redactions_total",
    "Secrets that were redacted, by pattern.",
    ("pattern",),
)

LOGSHIP_REQUESTS_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_requests_total",
    "Requests with events, by HTTP status (0: no response) and HEC code.",
    ("status", "code"),
)

LOGSHIP_REQUEST_DURATION_SECONDS = LOG_SHIPPING.histogram(
    "mm2_logship_request_duration_seconds",
    "Time until the response to a request with events.",
    buckets=COLLECT_BUCKETS,
)

LOGSHIP_POSSIBLE_DUPLICATES_TOTAL = LOG_SHIPPING.counter(
    "mm2_logship_possible_duplicates_total",
    "Events that were sent again although Splunk may have accepted them.",
)

LOGSHIP_UNSENT_BYTES = LOG_SHIPPING.gauge(
    "mm2_logship_unsent_bytes",
    "Bytes of log files that are not accepted yet.",
)

LOGSHIP_SEND_LAG_SECONDS = LOG_SHIPPING.gauge(
    "mm2_logship_send_lag_seconds",
    "Time since the oldest event was read that is not accepted yet.",
)

LOGSHIP_PENDING_ACKS = LOG_SHIPPING.gauge(
    "mm2_logship_pending_acks",
    "Requests that Splunk accepted but did not acknowledge yet.",
)

LOGSHIP_HOLD = LOG_SHIPPING.gauge(
    "mm2_logship_hold",
    "1 while nothing is sent to an index because the configuration is rejected; by HEC code.",
    ("index", "code"),
)
LOGSHIP_FILES = LOG_SHIPPING.gauge("mm2_logship_files", "Open log files.")

LOGSHIP_UNREADABLE_FILES = LOG_SHIPPING.gauge(
    "mm2_logship_unreadable_files", "Log files that cannot be read."
)

LOGSHIP_LAST_SUCCESS_TIMESTAMP_SECONDS = LOG_SHIPPING.gauge(
    "mm2_logship_last_success_timestamp_seconds",
    "Time of the last accepted request.",
)

LOGSHIP_GROUPS = MappingProxyType({LOG_SHIPPING.title: LOG_SHIPPING.metrics})
"""Metrics of `mm2slo logship` except `process_` metrics."""

REPORT_GROUPS = MappingProxyType(
    {subject.title: subject.metrics for subject in (AUDITS, REPORT_SERVICE)}
)
"""Metrics of the report service except `process_` metrics, by subject."""
