"""Metrics of MirrorMaker 2's heartbeats."""

from mm2slo_core.catalogue._metric_factories import MetricSubject
from mm2slo_core.catalogue.histogram_buckets import LATENCY_BUCKETS

HEARTBEATS = MetricSubject("Heartbeats")
HEARTBEATS_PRESENT = HEARTBEATS.gauge(
    "mm2_heartbeats_present",
    "1 if the target has MirrorMaker 2 heartbeats of this flow, else 0.",
)
HEARTBEAT_LAST_TIMESTAMP_SECONDS = HEARTBEATS.gauge(
    "mm2_heartbeat_last_timestamp_seconds",
    "Send time of the newest heartbeat that arrived on the target.",
    unit="seconds",
)
HEARTBEAT_AGE_SECONDS = HEARTBEATS.gauge(
    "mm2_heartbeat_age_seconds",
    "Age of the newest heartbeat that arrived on the target; continues to grow when the flow is "
    "stopped.",
    unit="seconds",
)
HEARTBEAT_LATENCY_SECONDS = HEARTBEATS.histogram(
    "mm2_heartbeat_latency_seconds",
    "Time from sending a heartbeat to its arrival on the target.",
    buckets=LATENCY_BUCKETS,
)
HEARTBEATS_RECEIVED_TOTAL = HEARTBEATS.counter(
    "mm2_heartbeats_received_total",
    "Heartbeats that arrived on the target.",
)
HEARTBEATS_MISSING_TOTAL = HEARTBEATS.counter(
    "mm2_heartbeats_missing_total",
    "Heartbeats that were expected by the heartbeat interval and never arrived.",
)
