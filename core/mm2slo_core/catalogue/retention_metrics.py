"""Metrics of retention headroom and certain loss."""

from mm2slo_core.catalogue._metric_factories import PARTITION, TOPIC, MetricSubject
from mm2slo_core.catalogue.metric import Rollup

RETENTION = MetricSubject("Retention")
RETENTION_HEADROOM_RECORDS = RETENTION.gauge(
    "mm2_retention_headroom_records",
    "Records between the log start of the source and the replicated position; minimum over "
    "partitions.",
    PARTITION,
    unit="records",
    rollup=Rollup.MIN,
)
RETENTION_HEADROOM_SECONDS = RETENTION.gauge(
    "mm2_retention_headroom_seconds",
    "Time until retention reaches the replicated position, by limit; minimum over partitions.",
    (*PARTITION, "limit"),
    unit="seconds",
    rollup=Rollup.MIN,
)
RETENTION_LOST_RECORDS_TOTAL = RETENTION.counter(
    "mm2_retention_lost_records_total",
    "Source records that retention removed before they were replicated, or that MirrorMaker 2 "
    "skipped in a re-created or truncated log.",
    TOPIC,
    unit="records",
)
RETENTION_PENDING_LOST_RECORDS = RETENTION.gauge(
    "mm2_retention_pending_lost_records",
    "Lost records that are not counted yet, because no state record on the target contains them.",
    unit="records",
)
