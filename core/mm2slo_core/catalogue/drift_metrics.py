"""Metrics of drift between source topics, target topics and assigned partitions."""

from mm2slo_core.catalogue._metric_factories import TOPIC, MetricSubject

DRIFT = MetricSubject("Drift")
TOPIC_MISSING = DRIFT.gauge(
    "mm2_topic_missing",
    "1 if the target topic of a replicated source topic does not exist, else 0.",
    TOPIC,
)
PARTITION_DRIFT = DRIFT.gauge(
    "mm2_partition_drift",
    "Absolute difference between the partition counts of source and target topic.",
    TOPIC,
)
TOPIC_CONFIG_DRIFT = DRIFT.gauge(
    "mm2_topic_config_drift",
    "1 for each replicated topic setting that differs between source and target.",
    (*TOPIC, "config"),
)
ASSIGNED_MISSING_PARTITIONS = DRIFT.gauge(
    "mm2_assigned_missing_partitions",
    "Partitions that are assigned to a MirrorMaker 2 task and have no target partition.",
    TOPIC,
)
UNASSIGNED_PARTITIONS = DRIFT.gauge(
    "mm2_unassigned_partitions",
    "Source partitions that are not assigned to any MirrorMaker 2 task.",
    TOPIC,
)
SOURCE_TRUNCATIONS_TOTAL = DRIFT.counter(
    "mm2_source_truncations_total",
    "Times the end offset of a source partition went back before the replicated position.",
    TOPIC,
)
TOPIC_RECREATIONS_TOTAL = DRIFT.counter(
    "mm2_topic_recreations_total",
    "Times a topic was deleted and re-created, by side: source or target.",
    (*TOPIC, "side"),
)
