"""Metrics of the exporter about itself."""

from mm2slo_core.catalogue._metric_factories import MetricSubject
from mm2slo_core.catalogue.histogram_buckets import COLLECT_BUCKETS

_STAGE = ("cluster", "stage")

EXPORTER = MetricSubject("Exporter")
EXPORTER_BUILD_INFO = EXPORTER.gauge(
    "mm2_exporter_build_info",
    "Always 1; the label is the running version.",
    ("version",),
    per_flow=False,
)
EXPORTER_COLLECT_DURATION_SECONDS = EXPORTER.histogram(
    "mm2_exporter_collect_duration_seconds",
    "Duration of a collection stage on a cluster, including failures.",
    _STAGE,
    buckets=COLLECT_BUCKETS,
    per_flow=False,
)
EXPORTER_COLLECT_ERRORS_TOTAL = EXPORTER.counter(
    "mm2_exporter_collect_errors_total",
    "Failed collection stages, by reason.",
    (*_STAGE, "reason"),
    per_flow=False,
)
EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS = EXPORTER.gauge(
    "mm2_exporter_last_success_timestamp_seconds",
    "Time of the last success of the collection stage.",
    _STAGE,
    unit="seconds",
    per_flow=False,
)
EXPORTER_KAFKA_REQUESTS_TOTAL = EXPORTER.counter(
    "mm2_exporter_kafka_requests_total",
    "Kafka requests sent to the cluster, by API.",
    ("cluster", "api"),
    per_flow=False,
)
EXPORTER_MALFORMED_RECORDS_TOTAL = EXPORTER.counter(
    "mm2_exporter_malformed_records_total",
    "Records of internal topics that could not be decoded.",
    ("cluster", "kind", "reason"),
    per_flow=False,
    unit="records",
)
EXPORTER_LOOP_FAILURES_TOTAL = EXPORTER.counter(
    "mm2_exporter_loop_failures_total",
    "Unexpected exceptions in background loops; each restarts the loop.",
    ("loop",),
    per_flow=False,
)
EXPORTER_SKIPPED_ROUNDS_TOTAL = EXPORTER.counter(
    "mm2_exporter_skipped_rounds_total",
    "Rounds of the flow that were not evaluated, because a newer one was read first.",
)
EXPORTER_HIDDEN_GROUPS = EXPORTER.gauge(
    "mm2_exporter_hidden_groups",
    "Consumer groups without series of their own, by exporter.group_series or the series limit.",
)
EXPORTER_FLOW_READY = EXPORTER.gauge(
    "mm2_exporter_flow_ready",
    "1 if all data of the flow has been read at least once, else 0.",
)
EXPORTER_SERIES = EXPORTER.gauge(
    "mm2_exporter_series", "Series in the latest snapshot, including this one.", per_flow=False
)
EXPORTER_GRANULARITY = EXPORTER.gauge(
    "mm2_exporter_granularity",
    "1 for the effective granularity (flow, topic or partition), 0 for the others; "
    "coarser than configured if the series limit is exceeded.",
    ("granularity",),
    per_flow=False,
)
EXPORTER_TIMELINE_WRITER = EXPORTER.gauge(
    "mm2_exporter_timeline_writer",
    "1 if this exporter writes the watermark timeline of the flow, else 0.",
)
EXPORTER_TIMELINE_BYTES_TOTAL = EXPORTER.counter(
    "mm2_exporter_timeline_bytes_total",
    "Bytes of keys and values written to the watermark timeline.",
    unit="bytes",
)
EXPORTER_TIMELINE_RECORDS_TOTAL = EXPORTER.counter(
    "mm2_exporter_timeline_records_total",
    "Records written to the watermark timeline.",
    unit="records",
)
EXPORTER_TOPICS_INTERVAL_SECONDS = EXPORTER.gauge(
    "mm2_exporter_topics_interval_seconds",
    "Interval between listings of a cluster's topics and partitions: 4 for up to 2,000 topics, "
    "above that the interval at which they take 2 % of a core.",
    ("cluster",),
    unit="seconds",
    per_flow=False,
)
EXPORTER_ARRIVAL_BRACKET_SECONDS = EXPORTER.gauge(
    "mm2_exporter_arrival_bracket_seconds",
    "Width of the brackets of arrival times on the target, by which audits bound latency: the "
    "interval between two reads of end offsets plus a response time. More than 0.3 above 1,000 "
    "partitions of the target or a round trip of 50 ms; the poll interval above 5,000 partitions "
    "or while some cannot be read. Published by the writer of the timeline.",
    unit="seconds",
)
EXPORTER_HISTORY_START_TIMESTAMP_SECONDS = EXPORTER.gauge(
    "mm2_exporter_history_start_timestamp_seconds",
    "Time from which on the arrivals of unreplicated records are known: the start of the exporter, "
    "or how far back it has read the watermark timeline.",
    unit="seconds",
)
EXPORTER_RENDER_DURATION_SECONDS = EXPORTER.gauge(
    "mm2_exporter_render_duration_seconds",
    "Duration of the last rendering of the exposition.",
    unit="seconds",
    per_flow=False,
)
EXPORTER_CYCLE_DURATION_SECONDS = EXPORTER.gauge(
    "mm2_exporter_cycle_duration_seconds",
    "Duration of the last evaluation cycle, including rendering.",
    unit="seconds",
    per_flow=False,
)
EXPORTER_CONFIG_RELOADS_TOTAL = EXPORTER.counter(
    "mm2_exporter_config_reloads_total",
    "Configuration reloads, by result: success or failure.",
    ("result",),
    per_flow=False,
)
