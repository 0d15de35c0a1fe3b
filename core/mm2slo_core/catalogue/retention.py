"""Metrics of how close retention on the source is to records that are not replicated yet."""

from mm2slo_core.catalogue._declare import PARTITION, TOPIC, counter, gauge
from mm2slo_core.catalogue.model import Rollup

RETENTION_HEADROOM_RECORDS = gauge(
    "mm2_retention_headroom_records",
    "Records between the source's log start and the replicated position; the smallest partition.",
    PARTITION,
    unit="records",
    rollup=Rollup.MIN,
)
RETENTION_HEADROOM_SECONDS = gauge(
    "mm2_retention_headroom_seconds",
    "Time until retention reaches the replicated position, by the limit that does; the smallest.",
    (*PARTITION, "limit"),
    unit="seconds",
    rollup=Rollup.MIN,
)
RETENTION_LOST_RECORDS_TOTAL = counter(
    "mm2_retention_lost_records_total",
    "Source records removed before they were replicated: certain loss.",
    TOPIC,
    unit="records",
)
