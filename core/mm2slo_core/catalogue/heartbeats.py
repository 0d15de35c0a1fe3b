"""Metrics of the heartbeats that MirrorMaker 2 itself sends."""

from mm2slo_core.catalogue._declare import counter, gauge, histogram
from mm2slo_core.catalogue.buckets import LATENCY_BUCKETS

HEARTBEATS_PRESENT = gauge(
    "mm2_heartbeats_present",
    "1 when heartbeats of MirrorMaker 2 for this flow are found on the target, else 0.",
)
HEARTBEAT_LAST_TIMESTAMP_SECONDS = gauge(
    "mm2_heartbeat_last_timestamp_seconds",
    "Time at which MirrorMaker 2 sent the newest heartbeat that arrived on the target.",
    unit="seconds",
)
HEARTBEAT_AGE_SECONDS = gauge(
    "mm2_heartbeat_age_seconds",
    "Age of the newest heartbeat that arrived on the target; keeps growing when the flow stops.",
    unit="seconds",
)
HEARTBEAT_LATENCY_SECONDS = histogram(
    "mm2_heartbeat_latency_seconds",
    "Time from the sending of a heartbeat to its arrival on the target.",
    buckets=LATENCY_BUCKETS,
)
HEARTBEATS_RECEIVED_TOTAL = counter(
    "mm2_heartbeats_received_total",
    "Heartbeats that arrived on the target.",
)
HEARTBEATS_MISSING_TOTAL = counter(
    "mm2_heartbeats_missing_total",
    "Heartbeats that were due by the heartbeat interval and did not arrive; late is not missing.",
)
