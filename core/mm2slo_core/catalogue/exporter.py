"""Metrics of the exporter about itself."""

from mm2slo_core.catalogue._declare import counter, gauge, histogram
from mm2slo_core.catalogue.buckets import COLLECT_BUCKETS

_STAGE = ("cluster", "stage")

EXPORTER_BUILD_INFO = gauge(
    "mm2_exporter_build_info", "Always 1; the running version.", ("version",), per_flow=False
)
EXPORTER_COLLECT_DURATION_SECONDS = histogram(
    "mm2_exporter_collect_duration_seconds",
    "Duration of one collection stage on one cluster, failed ones included.",
    _STAGE,
    buckets=COLLECT_BUCKETS,
    per_flow=False,
)
EXPORTER_COLLECT_ERRORS_TOTAL = counter(
    "mm2_exporter_collect_errors_total",
    "Collection stages that failed, by reason.",
    (*_STAGE, "reason"),
    per_flow=False,
)
EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS = gauge(
    "mm2_exporter_last_success_timestamp_seconds",
    "Time at which the collection stage last succeeded.",
    _STAGE,
    unit="seconds",
    per_flow=False,
)
EXPORTER_KAFKA_REQUESTS_TOTAL = counter(
    "mm2_exporter_kafka_requests_total",
    "Requests sent to the cluster.",
    ("cluster", "api"),
    per_flow=False,
)
EXPORTER_MALFORMED_RECORDS_TOTAL = counter(
    "mm2_exporter_malformed_records_total",
    "Records of internal topics that could not be decoded.",
    ("cluster", "kind", "reason"),
    per_flow=False,
    unit="records",
)
EXPORTER_FLOW_READY = gauge(
    "mm2_exporter_flow_ready",
    "1 when everything the flow's figures need has been read once, else 0.",
)
EXPORTER_SERIES = gauge(
    "mm2_exporter_series", "Series in the newest snapshot, these included.", per_flow=False
)
EXPORTER_GRANULARITY = gauge(
    "mm2_exporter_granularity",
    "1 for the granularity in force (flow, topic or partition), 0 for the others; "
    "coarser than configured when the series limit was met.",
    ("granularity",),
    per_flow=False,
)
EXPORTER_TIMELINE_WRITER = gauge(
    "mm2_exporter_timeline_writer",
    "1 when this exporter writes the flow's watermark timeline, else 0.",
)
EXPORTER_TIMELINE_BYTES_TOTAL = counter(
    "mm2_exporter_timeline_bytes_total",
    "Bytes of keys and values written to the watermark timeline.",
    unit="bytes",
)
EXPORTER_TIMELINE_RECORDS_TOTAL = counter(
    "mm2_exporter_timeline_records_total",
    "Records written to the watermark timeline.",
    unit="records",
)
EXPORTER_RENDER_DURATION_SECONDS = gauge(
    "mm2_exporter_render_duration_seconds",
    "Duration of the newest rendering of the exposition.",
    unit="seconds",
    per_flow=False,
)
EXPORTER_CYCLE_DURATION_SECONDS = gauge(
    "mm2_exporter_cycle_duration_seconds",
    "Duration of the newest evaluation cycle, rendering included.",
    unit="seconds",
    per_flow=False,
)
EXPORTER_CONFIG_RELOADS_TOTAL = counter(
    "mm2_exporter_config_reloads_total",
    "Configuration reloads by result: success or failure.",
    ("result",),
    per_flow=False,
)
