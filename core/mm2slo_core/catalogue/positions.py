"""Metrics of offsets on both clusters and of the replicated position between them."""

from mm2slo_core.catalogue._declare import PARTITION, TOPIC, counter, gauge
from mm2slo_core.catalogue.model import Granularity

SOURCE_END_OFFSET = gauge(
    "mm2_source_end_offset",
    "End offset of the source partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
SOURCE_START_OFFSET = gauge(
    "mm2_source_start_offset",
    "Log start offset of the source partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
TARGET_END_OFFSET = gauge(
    "mm2_target_end_offset",
    "End offset of the target partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
TARGET_START_OFFSET = gauge(
    "mm2_target_start_offset",
    "Log start offset of the target partition; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
REPLICATED_SOURCE_OFFSET = gauge(
    "mm2_replicated_source_offset",
    "Source offset of the next record to replicate; summed over partitions at topic level.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)
POSITION_QUALITY = gauge(
    "mm2_position_quality",
    "1 for how exactly the replicated position of the partition is known; other qualities have no "
    "series.",
    (*PARTITION, "quality"),
    coarsest=Granularity.PARTITION,
)
SOURCE_RECORDS_TOTAL = counter(
    "mm2_source_records_total",
    "Records appended on the source while it was watched, by offsets.",
    TOPIC,
    unit="records",
)
REPLICATED_RECORDS_TOTAL = counter(
    "mm2_replicated_records_total",
    "Source records replicated while the flow was watched, by offsets.",
    TOPIC,
    unit="records",
)
