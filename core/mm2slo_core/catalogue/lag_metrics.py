"""Metrics of lag, progress and stall by topic and partition."""

from mm2slo_core.catalogue._metric_factories import PARTITION, TOPIC, MetricSubject
from mm2slo_core.catalogue.metric import Granularity, Rollup

LAG = MetricSubject("Lag")
REPLICATION_LAG_RECORDS = LAG.gauge(
    "mm2_replication_lag_records",
    "Source records not yet replicated; continues to grow when the flow is stopped.",
    PARTITION,
    unit="records",
    coarsest=Granularity.TOPIC,
)
REPLICATION_LAG_SECONDS = LAG.gauge(
    "mm2_replication_lag_seconds",
    "Age of the oldest source record not yet replicated; 0 without lag.",
    PARTITION,
    unit="seconds",
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)
REPLICATION_PROGRESS_TIMESTAMP_SECONDS = LAG.gauge(
    "mm2_replication_progress_timestamp_seconds",
    "Time of the last advance of the replicated position; absent without unreplicated records.",
    PARTITION,
    unit="seconds",
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)
OPEN_TRANSACTION_RECORDS = LAG.gauge(
    "mm2_open_transaction_records",
    "Source records between the last stable offset and the high watermark.",
    PARTITION,
    unit="records",
    coarsest=Granularity.TOPIC,
)
STALLED_PARTITIONS = LAG.gauge(
    "mm2_stalled_partitions",
    "Partitions with unreplicated records whose replicated position does not advance.",
    TOPIC,
)
PARTITION_STALLED = LAG.gauge(
    "mm2_partition_stalled",
    "1 if the partition has unreplicated records and its replicated position does not advance, "
    "else 0.",
    PARTITION,
    coarsest=Granularity.PARTITION,
)
