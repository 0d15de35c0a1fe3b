"""Metrics of offsets on both clusters and of the replicated position."""

from mm2slo_core.catalogue._metric_factories import PARTITION, TOPIC, MetricSubject
from mm2slo_core.catalogue.metric import Granularity

POSITIONS = MetricSubject("Positions")
SOURCE_END_OFFSET = POSITIONS.gauge(
    "mm2_source_end_offset",
    "End offset of the source partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
SOURCE_START_OFFSET = POSITIONS.gauge(
    "mm2_source_start_offset",
    "Log start offset of the source partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
TARGET_END_OFFSET = POSITIONS.gauge(
    "mm2_target_end_offset",
    "End offset of the target partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
TARGET_START_OFFSET = POSITIONS.gauge(
    "mm2_target_start_offset",
    "Log start offset of the target partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
REPLICATED_SOURCE_OFFSET = POSITIONS.gauge(
    "mm2_replicated_source_offset",
    "Source offset of the next record to replicate; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
POSITION_QUALITY = POSITIONS.gauge(
    "mm2_position_quality",
    "1 for the quality of the replicated position of the partition; other qualities have no "
    "series.",
    (*PARTITION, "quality"),
    coarsest=Granularity.PARTITION,
)
SOURCE_RECORDS_TOTAL = POSITIONS.counter(
    "mm2_source_records_total",
    "Records appended to the source while the exporter observed it, by offsets.",
    TOPIC,
    unit="records",
)
REPLICATED_RECORDS_TOTAL = POSITIONS.counter(
    "mm2_replicated_records_total",
    "Source records replicated while the exporter observed the flow, by offsets.",
    TOPIC,
    unit="records",
)
