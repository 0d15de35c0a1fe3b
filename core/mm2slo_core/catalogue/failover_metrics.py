"""Metrics of offset syncs, checkpoints, failover readiness and consumer groups."""

from mm2slo_core.catalogue._metric_factories import PARTITION, TOPIC, MetricSubject
from mm2slo_core.catalogue.metric import Granularity, Rollup

_GROUP = ("group",)
_CLUSTER_GROUP = ("cluster", "group")

FAILOVER = MetricSubject("Failover")
OFFSET_SYNC_LAST_TIMESTAMP_SECONDS = FAILOVER.gauge(
    "mm2_offset_sync_last_timestamp_seconds",
    "Time of the newest offset sync.",
    PARTITION,
    unit="seconds",
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)
OFFSET_SYNC_GAP_RECORDS = FAILOVER.gauge(
    "mm2_offset_sync_gap_records",
    "Records between the newest offset sync and the replicated position; maximum over partitions.",
    PARTITION,
    unit="records",
    coarsest=Granularity.TOPIC,
    rollup=Rollup.MAX,
)
CHECKPOINT_LAST_TIMESTAMP_SECONDS = FAILOVER.gauge(
    "mm2_checkpoint_last_timestamp_seconds",
    "Time of the newest checkpoint of the group on the target.",
    _GROUP,
    unit="seconds",
)
CHECKPOINT_AGE_SECONDS = FAILOVER.gauge(
    "mm2_checkpoint_age_seconds",
    "Age of the newest checkpoint of the group on the target.",
    _GROUP,
    unit="seconds",
)
CHECKPOINT_LAG_RECORDS = FAILOVER.gauge(
    "mm2_checkpoint_lag_records",
    "Records between the newest checkpoint of the group and its committed offset on the source.",
    (*_GROUP, *TOPIC),
    unit="records",
)
FAILOVER_REDELIVERY_RECORDS = FAILOVER.gauge(
    "mm2_failover_redelivery_records",
    "Records that the group would read again if it failed over now, by bound: lower or upper.",
    (*_GROUP, "bound"),
    unit="records",
)
FAILOVER_SKIPPED_RECORDS = FAILOVER.gauge(
    "mm2_failover_skipped_records",
    "Records that the group would never read if it failed over now, by bound: lower or upper; no "
    "series for a group that skips none.",
    (*_GROUP, "bound"),
    unit="records",
)
FAILOVER_COMMITS_AGE_SECONDS = FAILOVER.gauge(
    "mm2_failover_commits_age_seconds",
    "Age of the committed offsets of the group on the source, on which its redelivery is based.",
    _GROUP,
    unit="seconds",
)
FAILOVER_UNREPLICATED_RECORDS = FAILOVER.gauge(
    "mm2_failover_unreplicated_records",
    "Records that would be missing on the target if the source never came back; as of the last "
    "reading of the source.",
    unit="records",
)
FAILOVER_UNREPLICATED_SECONDS = FAILOVER.gauge(
    "mm2_failover_unreplicated_seconds",
    "Age of the oldest unreplicated record when the source was last read.",
    unit="seconds",
)
FAILOVER_UNREPLICATED_AGE_SECONDS = FAILOVER.gauge(
    "mm2_failover_unreplicated_age_seconds",
    "Age of the last reading of the source, on which the unreplicated records are based.",
    unit="seconds",
)
FAILOVER_GROUP_UNREPLICATED_RECORDS = FAILOVER.gauge(
    "mm2_failover_group_unreplicated_records",
    "Unreplicated records of the partitions on which the group commits; as of the last reading of "
    "the source.",
    _GROUP,
    unit="records",
)
FAILOVER_GROUP_UNREPLICATED_SECONDS = FAILOVER.gauge(
    "mm2_failover_group_unreplicated_seconds",
    "Age of the oldest of these records when the source was last read.",
    _GROUP,
    unit="seconds",
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
    unit="records",
)
GROUP_LAG_SECONDS = FAILOVER.gauge(
    "mm2_group_lag_seconds",
    "Age of the oldest of these records, by polls of the end offsets; 0 without lag, absent for "
    "records older than the exporter or the group's first reading.",
    (*_CLUSTER_GROUP, *TOPIC),
    unit="seconds",
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
