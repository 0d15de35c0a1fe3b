"""Metrics of differences between a source topic, its target topic and what MM2 replicates."""

from mm2slo_core.catalogue._declare import TOPIC, counter, gauge

TOPIC_MISSING = gauge(
    "mm2_topic_missing",
    "1 when the target has no topic for a source topic that the flow replicates, else 0.",
    TOPIC,
)
PARTITION_DRIFT = gauge(
    "mm2_partition_drift",
    "Difference between the partition counts of the source topic and its target topic, absolute.",
    TOPIC,
)
TOPIC_CONFIG_DRIFT = gauge(
    "mm2_topic_config_drift",
    "1 for a replicated topic setting whose value differs between source and target.",
    (*TOPIC, "config"),
)
ASSIGNED_MISSING_PARTITIONS = gauge(
    "mm2_assigned_missing_partitions",
    "Partitions assigned to a task of MirrorMaker 2 that have no copy on the target.",
    TOPIC,
)
UNASSIGNED_PARTITIONS = gauge(
    "mm2_unassigned_partitions",
    "Source partitions that no task of MirrorMaker 2 is assigned.",
    TOPIC,
)
SOURCE_TRUNCATIONS_TOTAL = counter(
    "mm2_source_truncations_total",
    "Times the end of a source partition went back behind the replicated position.",
    TOPIC,
)
TOPIC_RECREATIONS_TOTAL = counter(
    "mm2_topic_recreations_total",
    "Times a topic was deleted and created again while watched, by side: source or target.",
    (*TOPIC, "side"),
)
