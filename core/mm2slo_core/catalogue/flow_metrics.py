"""Metrics of flows: state, lag, positions, retention, drift, failover, canaries and SLIs."""

from mm2slo_core.catalogue.metric import (
    LATENCY_BUCKETS,
    PARTITION,
    TOPIC,
    Granularity,
    MetricSubject,
    Rollup,
)

FLOWS = MetricSubject("Flows")

FLOW_INFO = FLOWS.gauge(
    "mm2_flow_info",
    "Always 1; the labels describe the flow, its canary, and whether MirrorMaker 2 emits "
    "heartbeats.",
    ("policy", "separator", "engine", "canary", "heartbeats"),
)

FLOW_SETTING_OVERRIDDEN = FLOWS.gauge(
    "mm2_flow_setting_overridden",
    "1 for a setting of the flow that running connectors have differently than configured; their "
    "value is used. The log has both values.",
    ("setting",),
)

TOPIC_INFO = FLOWS.gauge(
    "mm2_topic_info",
    "Always 1; maps a source topic to its target topic.",
    ("topic", "target_topic"),
    coarsest=Granularity.TOPIC,
)

FLOW_STATE = FLOWS.gauge(
    "mm2_flow_state",
    "1 for the state of the flow (running, idle, stopped or unknown), 0 for the others.",
    ("state",),
)

FLOW_OBSERVED_TIMESTAMP_SECONDS = FLOWS.gauge(
    "mm2_flow_observed_timestamp_seconds",
    "Time of the newest observation of the flow that was evaluated; at first the time of its "
    "start.",
)

FLOW_LAG_RECORDS = FLOWS.gauge(
    "mm2_flow_lag_records",
    "Source records that the flow has not yet replicated, over all partitions.",
)

FLOW_LAG_SECONDS = FLOWS.gauge(
    "mm2_flow_lag_seconds",
    "Age of the oldest source record that the flow has not yet replicated; 0 without lag.",
)

CATCHUP_ETA_SECONDS = FLOWS.gauge(
    "mm2_catchup_eta_seconds",
    "Estimated time until the lag is zero at the current net rate; absent unless the lag shrinks.",
)

REPLICATED_PARTITIONS = FLOWS.gauge(
    "mm2_replicated_partitions",
    "Replicated partitions of the flow, by quality of their replicated position.",
    ("quality",),
)

LAG_SECONDS_ORIGIN_PARTITIONS = FLOWS.gauge(
    "mm2_lag_seconds_origin_partitions",
    "Replicated partitions of the flow, by origin of their lag in seconds; it is unknown with "
    "pending, after a start until the timeline has been read, and with absent.",
    ("origin",),
)
HEARTBEATS = MetricSubject("Heartbeats")

HEARTBEATS_PRESENT = HEARTBEATS.gauge(
    "mm2_heartbeats_present",
    "1 if the target has MirrorMaker 2 heartbeats of this flow, else 0.",
)

HEARTBEAT_LAST_TIMESTAMP_SECONDS = HEARTBEATS.gauge(
    "mm2_heartbeat_last_timestamp_seconds",
    "Send time of the newest heartbeat that arrived on the target.",
)

HEARTBEAT_AGE_SECONDS = HEARTBEATS.gauge(
    "mm2_heartbeat_age_seconds",
    "Time since a heartbeat last arrived on the target; continues to grow when the flow is "
    "stopped.",
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
_CARRIER = ("carrier",)
CANARY = MetricSubject("Canary")

CANARY_LATENCY_SECONDS = CANARY.histogram(
    "mm2_canary_latency_seconds",
    "Time from sending a canary on the source to its arrival on the target.",
    _CARRIER,
    buckets=LATENCY_BUCKETS,
)

CANARY_SENT_TOTAL = CANARY.counter(
    "mm2_canary_sent_total", "Canaries that the source cluster acknowledged.", _CARRIER
)

CANARY_RECEIVED_TOTAL = CANARY.counter(
    "mm2_canary_received_total",
    "Canaries that arrived on the target, including late ones, without duplicates.",
    _CARRIER,
)

CANARY_LATE_TOTAL = CANARY.counter(
    "mm2_canary_late_total", "Canaries that arrived after their deadline.", _CARRIER
)

CANARY_LOST_TOTAL = CANARY.counter(
    "mm2_canary_lost_total",
    "Canaries that did not arrive although the replicated position passed them.",
    _CARRIER,
)

CANARY_EXPIRED_TOTAL = CANARY.counter(
    "mm2_canary_expired_total",
    "Canaries that the source removed before they were replicated.",
    _CARRIER,
)

CANARY_DUPLICATES_TOTAL = CANARY.counter(
    "mm2_canary_duplicates_total", "Repeated arrivals of canaries.", _CARRIER
)

CANARY_REORDERED_TOTAL = CANARY.counter(
    "mm2_canary_reordered_total",
    "Canaries that arrived after a later canary of their partition.",
    _CARRIER,
)

CANARY_MOVED_TOTAL = CANARY.counter(
    "mm2_canary_moved_total",
    "Canaries that arrived in a partition other than that on the source.",
    _CARRIER,
)

CANARY_UNKNOWN_TOTAL = CANARY.counter(
    "mm2_canary_unknown_total",
    "Canaries whose outcome is unknown for a reason outside of the flow.",
    _CARRIER,
)

CANARY_PENDING = CANARY.gauge(
    "mm2_canary_pending", "Canaries that were sent and are not settled for completeness.", _CARRIER
)

CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS = CANARY.gauge(
    "mm2_canary_last_arrival_timestamp_seconds",
    "Arrival time of the newest canary on the target.",
    _CARRIER,
)
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
)

REPLICATED_RECORDS_TOTAL = POSITIONS.counter(
    "mm2_replicated_records_total",
    "Source records replicated while the exporter observed the flow, by offsets.",
    TOPIC,
)
LAG = MetricSubject("Lag")

REPLICATION_LAG_RECORDS = LAG.gauge(
    "mm2_replication_lag_records",
    "Source records not yet replicated; continues to grow when the flow is stopped.",
    PARTITION,
    coarsest=Granularity.TOPIC,
)

REPLICATION_LAG_SECONDS = LAG.gauge(
    "mm2_replication_lag_seconds",
    "Age of the oldest source record not yet replicated; 0 without lag.",
    PARTITION,
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)

REPLICATION_PROGRESS_TIMESTAMP_SECONDS = LAG.gauge(
    "mm2_replication_progress_timestamp_seconds",
    "Time of the last advance of the replicated position; absent without unreplicated records.",
    PARTITION,
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)

OPEN_TRANSACTION_RECORDS = LAG.gauge(
    "mm2_open_transaction_records",
    "Source records between the last stable offset and the high watermark.",
    PARTITION,
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
RETENTION = MetricSubject("Retention")

RETENTION_HEADROOM_RECORDS = RETENTION.gauge(
    "mm2_retention_headroom_records",
    "Records between the log start of the source and the replicated position; minimum over "
    "partitions.",
    PARTITION,
    rollup=Rollup.MIN,
)

RETENTION_HEADROOM_SECONDS = RETENTION.gauge(
    "mm2_retention_headroom_seconds",
    "Shortest time until retention may reach the replicated position, by limit; minimum over "
    "partitions.",
    (*PARTITION, "limit"),
    rollup=Rollup.MIN,
)

RETENTION_LOST_RECORDS_TOTAL = RETENTION.counter(
    "mm2_retention_lost_records_total",
    "Source records that retention removed before they were replicated, or that MirrorMaker 2 "
    "skipped in a re-created or truncated log.",
    TOPIC,
)

RETENTION_PENDING_LOST_RECORDS = RETENTION.gauge(
    "mm2_retention_pending_lost_records",
    "Lost records that are not counted yet, because no state record on the target contains them.",
)
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
    "Times the end offset of a source partition went back other than by a known re-creation of its "
    "topic.",
    TOPIC,
)

TOPIC_RECREATIONS_TOTAL = DRIFT.counter(
    "mm2_topic_recreations_total",
    "Times a topic was deleted and re-created, by side: source or target.",
    (*TOPIC, "side"),
)
_GROUP = ("group",)
_CLUSTER_GROUP = ("cluster", "group")
FAILOVER = MetricSubject("Failover")

OFFSET_SYNC_LAST_TIMESTAMP_SECONDS = FAILOVER.gauge(
    "mm2_offset_sync_last_timestamp_seconds",
    "Time of the newest offset sync.",
    PARTITION,
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)

OFFSET_SYNC_GAP_RECORDS = FAILOVER.gauge(
    "mm2_offset_sync_gap_records",
    "Records between the newest offset sync and the replicated position; maximum over partitions.",
    PARTITION,
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)

CHECKPOINT_LAST_TIMESTAMP_SECONDS = FAILOVER.gauge(
    "mm2_checkpoint_last_timestamp_seconds",
    "Time of the newest checkpoint of the group on the target.",
    _GROUP,
)

CHECKPOINT_AGE_SECONDS = FAILOVER.gauge(
    "mm2_checkpoint_age_seconds",
    "Age of the newest checkpoint of the group on the target.",
    _GROUP,
)

CHECKPOINT_LAG_RECORDS = FAILOVER.gauge(
    "mm2_checkpoint_lag_records",
    "Records between the newest checkpoint of the group and its committed offset on the source.",
    (*_GROUP, *TOPIC),
)

FAILOVER_REDELIVERY_RECORDS = FAILOVER.gauge(
    "mm2_failover_redelivery_records",
    "Records that the group would read again if it failed over now, by bound: lower or upper.",
    (*_GROUP, "bound"),
)

FAILOVER_SKIPPED_RECORDS = FAILOVER.gauge(
    "mm2_failover_skipped_records",
    "Records that the group would never read if it failed over now, by bound: lower or upper; no "
    "series for a group that skips none.",
    (*_GROUP, "bound"),
)

FAILOVER_COMMITS_AGE_SECONDS = FAILOVER.gauge(
    "mm2_failover_commits_age_seconds",
    "Age of the committed offsets of the group on the source, on which its redelivery is based.",
    _GROUP,
)

FAILOVER_UNREPLICATED_RECORDS = FAILOVER.gauge(
    "mm2_failover_unreplicated_records",
    "Records that would be missing on the target if the source never came back; as of the last "
    "reading of the source.",
)

FAILOVER_UNREPLICATED_SECONDS = FAILOVER.gauge(
    "mm2_failover_unreplicated_seconds",
    "Age of the oldest unreplicated record when the source was last read.",
)

FAILOVER_UNREPLICATED_AGE_SECONDS = FAILOVER.gauge(
    "mm2_failover_unreplicated_age_seconds",
    "Age of the last reading of the source, on which the unreplicated records are based.",
)

FAILOVER_GROUP_UNREPLICATED_RECORDS = FAILOVER.gauge(
    "mm2_failover_group_unreplicated_records",
    "Unreplicated records of the partitions on which the group commits; as of the last reading of "
    "the source.",
    _GROUP,
)

FAILOVER_GROUP_UNREPLICATED_SECONDS = FAILOVER.gauge(
    "mm2_failover_group_unreplicated_seconds",
    "Age of the oldest of these records when the source was last read.",
    _GROUP,
)

FAILOVER_READY = FAILOVER.gauge(
    "mm2_failover_ready",
    "1 if the group would resume correctly on the target, else 0; also while the flow is stopped.",
    _GROUP,
)

FAILOVER_BLOCKED = FAILOVER.gauge(
    "mm2_failover_blocked",
    "1 for each reason that blocks the failover of the group; no series for other reasons.",
    (*_GROUP, "reason"),
)

FAILOVER_UNJUDGED_GROUPS = FAILOVER.gauge(
    "mm2_failover_unjudged_groups",
    "Groups of the source without a verdict, by reason: excluded by the filter of the flow, or "
    "without_commits on a replicated topic.",
    ("reason",),
)

FAILOVER_GROUP_TYPES_KNOWN = FAILOVER.gauge(
    "mm2_failover_group_types_known",
    "1 if groups of all types were listed on the source, else 0: Streams and share groups may be "
    "missing.",
)

GROUP_LAG_RECORDS = FAILOVER.gauge(
    "mm2_group_lag_records",
    "Records between the committed offsets of the group and the end of the log on the source or "
    "target cluster, when its commits were last read; the topic is that of the source. Absent "
    "while a commit is beyond the end, which mm2_failover_blocked reports.",
    (*_CLUSTER_GROUP, *TOPIC),
)

GROUP_LAG_SECONDS = FAILOVER.gauge(
    "mm2_group_lag_seconds",
    "Age of the oldest of these records, by polls of the end offsets; 0 without lag, absent for "
    "records older than the exporter or the group's first reading.",
    (*_CLUSTER_GROUP, *TOPIC),
    rollup=Rollup.MAX,
)

GROUP_STATE = FAILOVER.gauge(
    "mm2_group_state",
    "1 for the state of the group on the cluster (stable, empty, preparing_rebalancing, ...; "
    "unknown while a group of the newer protocol, KIP-848, rebalances); no series for others.",
    (*_CLUSTER_GROUP, "state"),
)

GROUP_MEMBERS = FAILOVER.gauge(
    "mm2_group_members",
    "Members of the group on the cluster.",
    _CLUSTER_GROUP,
)
CONNECT = MetricSubject("Connectors and tasks")

CONNECTOR_STATE = CONNECT.gauge(
    "mm2_connector_state",
    "1 for the state the connector reports, 0 for the others.",
    ("connector", "state"),
)

TASK_STATE = CONNECT.gauge(
    "mm2_task_state",
    "1 for the state the task reports, 0 for the others.",
    ("connector", "task", "state"),
)
_SLI = ("sli", "tier")
INDICATORS = MetricSubject("Service-level indicators")

SLI_GOOD_EVENTS_TOTAL = INDICATORS.counter(
    "mm2_sli_good_events_total", "Good events of the indicator.", _SLI
)

SLI_EVENTS_TOTAL = INDICATORS.counter(
    "mm2_sli_events_total", "Good and bad events of the indicator.", _SLI
)

SLI_UNKNOWN_EVENTS_TOTAL = INDICATORS.counter(
    "mm2_sli_unknown_events_total",
    "Events of the indicator that are neither good nor bad because they could not be measured; "
    "they lower coverage.",
    _SLI,
)
