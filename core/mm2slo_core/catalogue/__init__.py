"""All metrics of the project.

A constant is the metric name in capitals without the prefix `mm2_`, as in
`from mm2slo_core.catalogue import REPLICATION_LAG_RECORDS`.
"""

from __future__ import annotations

from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import (
    canary_metrics,
    connect_metrics,
    drift_metrics,
    exporter_metrics,
    failover_metrics,
    flow_metrics,
    heartbeat_metrics,
    lag_metrics,
    position_metrics,
    process_metrics,
    retention_metrics,
    sli_metrics,
)
from mm2slo_core.catalogue.canary_metrics import (
    CANARY_DUPLICATES_TOTAL,
    CANARY_EXPIRED_TOTAL,
    CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS,
    CANARY_LATE_TOTAL,
    CANARY_LATENCY_SECONDS,
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CANARY_PENDING,
    CANARY_RECEIVED_TOTAL,
    CANARY_REORDERED_TOTAL,
    CANARY_SENT_TOTAL,
    CANARY_UNKNOWN_TOTAL,
)
from mm2slo_core.catalogue.connect_metrics import (
    CONNECTOR_STATE,
    TASK_STATE,
)
from mm2slo_core.catalogue.drift_metrics import (
    ASSIGNED_MISSING_PARTITIONS,
    PARTITION_DRIFT,
    SOURCE_TRUNCATIONS_TOTAL,
    TOPIC_CONFIG_DRIFT,
    TOPIC_MISSING,
    TOPIC_RECREATIONS_TOTAL,
    UNASSIGNED_PARTITIONS,
)
from mm2slo_core.catalogue.exporter_metrics import (
    EXPORTER_BUILD_INFO,
    EXPORTER_COLLECT_DURATION_SECONDS,
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_CONFIG_RELOADS_TOTAL,
    EXPORTER_CYCLE_DURATION_SECONDS,
    EXPORTER_FLOW_READY,
    EXPORTER_GRANULARITY,
    EXPORTER_HIDDEN_GROUPS,
    EXPORTER_KAFKA_REQUESTS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_LOOP_FAILURES_TOTAL,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
    EXPORTER_RENDER_DURATION_SECONDS,
    EXPORTER_SERIES,
    EXPORTER_SKIPPED_ROUNDS_TOTAL,
    EXPORTER_TIMELINE_BYTES_TOTAL,
    EXPORTER_TIMELINE_RECORDS_TOTAL,
    EXPORTER_TIMELINE_WRITER,
)
from mm2slo_core.catalogue.failover_metrics import (
    CHECKPOINT_AGE_SECONDS,
    CHECKPOINT_LAG_RECORDS,
    CHECKPOINT_LAST_TIMESTAMP_SECONDS,
    FAILOVER_BLOCKED,
    FAILOVER_COMMITS_AGE_SECONDS,
    FAILOVER_GROUP_UNREPLICATED_RECORDS,
    FAILOVER_GROUP_UNREPLICATED_SECONDS,
    FAILOVER_READY,
    FAILOVER_REDELIVERY_RECORDS,
    FAILOVER_UNREPLICATED_AGE_SECONDS,
    FAILOVER_UNREPLICATED_RECORDS,
    FAILOVER_UNREPLICATED_SECONDS,
    OFFSET_SYNC_AGE_SECONDS,
    OFFSET_SYNC_GAP_RECORDS,
    OFFSET_SYNC_LAST_TIMESTAMP_SECONDS,
)
from mm2slo_core.catalogue.flow_metrics import (
    CATCHUP_ETA_SECONDS,
    FLOW_INFO,
    FLOW_LAG_RECORDS,
    FLOW_LAG_SECONDS,
    FLOW_OBSERVED_TIMESTAMP_SECONDS,
    FLOW_SETTING_OVERRIDDEN,
    FLOW_STATE,
    LAG_SECONDS_ORIGIN_PARTITIONS,
    REPLICATED_PARTITIONS,
    TOPIC_INFO,
)
from mm2slo_core.catalogue.heartbeat_metrics import (
    HEARTBEAT_AGE_SECONDS,
    HEARTBEAT_LAST_TIMESTAMP_SECONDS,
    HEARTBEAT_LATENCY_SECONDS,
    HEARTBEATS_MISSING_TOTAL,
    HEARTBEATS_PRESENT,
    HEARTBEATS_RECEIVED_TOTAL,
)
from mm2slo_core.catalogue.lag_metrics import (
    OPEN_TRANSACTION_RECORDS,
    PARTITION_STALLED,
    REPLICATION_LAG_RECORDS,
    REPLICATION_LAG_SECONDS,
    REPLICATION_PROGRESS_TIMESTAMP_SECONDS,
    STALLED_PARTITIONS,
)
from mm2slo_core.catalogue.metric import (
    FLOW_LABELS,
    Component,
    Granularity,
    Metric,
    MetricType,
    Rollup,
)
from mm2slo_core.catalogue.position_metrics import (
    POSITION_QUALITY,
    REPLICATED_RECORDS_TOTAL,
    REPLICATED_SOURCE_OFFSET,
    SOURCE_END_OFFSET,
    SOURCE_RECORDS_TOTAL,
    SOURCE_START_OFFSET,
    TARGET_END_OFFSET,
    TARGET_START_OFFSET,
)
from mm2slo_core.catalogue.process_metrics import (
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_MAX_FDS,
    PROCESS_OPEN_FDS,
    PROCESS_RESIDENT_MEMORY_BYTES,
    PROCESS_START_TIME_SECONDS,
    PROCESS_VIRTUAL_MEMORY_BYTES,
    PYTHON_INFO,
)
from mm2slo_core.catalogue.recorded_series import (
    BAD_INCREASE,
    BAD_STEP,
    BAD_SUM,
    BUDGET_REMAINING,
    BURN,
    CHAIN_WINDOWS,
    COVERAGE,
    DIRECT_WINDOWS,
    DUE_STEP,
    ERROR,
    EVENTS_INCREASE,
    EVENTS_STEP,
    EVENTS_SUM,
    EXCLUDED_STEP,
    LONG_WINDOWS,
    MAINTENANCE_ACTIVE,
    MEASURED,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
    RECORDED,
    RECORDED_GROUPS,
    SLI_LABELS,
    UNKNOWN_STEP,
    WINDOW,
    WINDOW_SECONDS,
    RecordedSeries,
)
from mm2slo_core.catalogue.retention_metrics import (
    RETENTION_HEADROOM_RECORDS,
    RETENTION_HEADROOM_SECONDS,
    RETENTION_LOST_RECORDS_TOTAL,
    RETENTION_PENDING_LOST_RECORDS,
)
from mm2slo_core.catalogue.sli_metrics import (
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALL",
    "ASSIGNED_MISSING_PARTITIONS",
    "BAD_INCREASE",
    "BAD_STEP",
    "BAD_SUM",
    "BUDGET_REMAINING",
    "BURN",
    "BY_NAME",
    "CANARY_DUPLICATES_TOTAL",
    "CANARY_EXPIRED_TOTAL",
    "CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS",
    "CANARY_LATENCY_SECONDS",
    "CANARY_LATE_TOTAL",
    "CANARY_LOST_TOTAL",
    "CANARY_MOVED_TOTAL",
    "CANARY_PENDING",
    "CANARY_RECEIVED_TOTAL",
    "CANARY_REORDERED_TOTAL",
    "CANARY_SENT_TOTAL",
    "CANARY_UNKNOWN_TOTAL",
    "CATCHUP_ETA_SECONDS",
    "CHAIN_WINDOWS",
    "CHECKPOINT_AGE_SECONDS",
    "CHECKPOINT_LAG_RECORDS",
    "CHECKPOINT_LAST_TIMESTAMP_SECONDS",
    "CONNECTOR_STATE",
    "COVERAGE",
    "DIRECT_WINDOWS",
    "DUE_STEP",
    "ERROR",
    "EVENTS_INCREASE",
    "EVENTS_STEP",
    "EVENTS_SUM",
    "EXCLUDED_STEP",
    "EXPORTER_BUILD_INFO",
    "EXPORTER_COLLECT_DURATION_SECONDS",
    "EXPORTER_COLLECT_ERRORS_TOTAL",
    "EXPORTER_CONFIG_RELOADS_TOTAL",
    "EXPORTER_CYCLE_DURATION_SECONDS",
    "EXPORTER_FLOW_READY",
    "EXPORTER_GRANULARITY",
    "EXPORTER_HIDDEN_GROUPS",
    "EXPORTER_KAFKA_REQUESTS_TOTAL",
    "EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS",
    "EXPORTER_LOOP_FAILURES_TOTAL",
    "EXPORTER_MALFORMED_RECORDS_TOTAL",
    "EXPORTER_RENDER_DURATION_SECONDS",
    "EXPORTER_SERIES",
    "EXPORTER_SKIPPED_ROUNDS_TOTAL",
    "EXPORTER_TIMELINE_BYTES_TOTAL",
    "EXPORTER_TIMELINE_RECORDS_TOTAL",
    "EXPORTER_TIMELINE_WRITER",
    "FAILOVER_BLOCKED",
    "FAILOVER_COMMITS_AGE_SECONDS",
    "FAILOVER_GROUP_UNREPLICATED_RECORDS",
    "FAILOVER_GROUP_UNREPLICATED_SECONDS",
    "FAILOVER_READY",
    "FAILOVER_REDELIVERY_RECORDS",
    "FAILOVER_UNREPLICATED_AGE_SECONDS",
    "FAILOVER_UNREPLICATED_RECORDS",
    "FAILOVER_UNREPLICATED_SECONDS",
    "FLOW_INFO",
    "FLOW_LABELS",
    "FLOW_LAG_RECORDS",
    "FLOW_LAG_SECONDS",
    "FLOW_OBSERVED_TIMESTAMP_SECONDS",
    "FLOW_SETTING_OVERRIDDEN",
    "FLOW_STATE",
    "GROUPS",
    "HEARTBEATS_MISSING_TOTAL",
    "HEARTBEATS_PRESENT",
    "HEARTBEATS_RECEIVED_TOTAL",
    "HEARTBEAT_AGE_SECONDS",
    "HEARTBEAT_LAST_TIMESTAMP_SECONDS",
    "HEARTBEAT_LATENCY_SECONDS",
    "LAG_SECONDS_ORIGIN_PARTITIONS",
    "LONG_WINDOWS",
    "MAINTENANCE_ACTIVE",
    "MEASURED",
    "OBJECTIVE",
    "OBJECTIVE_WINDOW",
    "OFFSET_SYNC_AGE_SECONDS",
    "OFFSET_SYNC_GAP_RECORDS",
    "OFFSET_SYNC_LAST_TIMESTAMP_SECONDS",
    "OPEN_TRANSACTION_RECORDS",
    "PARTITION_DRIFT",
    "PARTITION_STALLED",
    "POSITION_QUALITY",
    "PROCESS_CPU_SECONDS_TOTAL",
    "PROCESS_MAX_FDS",
    "PROCESS_OPEN_FDS",
    "PROCESS_RESIDENT_MEMORY_BYTES",
    "PROCESS_START_TIME_SECONDS",
    "PROCESS_VIRTUAL_MEMORY_BYTES",
    "PYTHON_INFO",
    "RECORDED",
    "RECORDED_GROUPS",
    "REPLICATED_PARTITIONS",
    "REPLICATED_RECORDS_TOTAL",
    "REPLICATED_SOURCE_OFFSET",
    "REPLICATION_LAG_RECORDS",
    "REPLICATION_LAG_SECONDS",
    "REPLICATION_PROGRESS_TIMESTAMP_SECONDS",
    "RETENTION_HEADROOM_RECORDS",
    "RETENTION_HEADROOM_SECONDS",
    "RETENTION_LOST_RECORDS_TOTAL",
    "RETENTION_PENDING_LOST_RECORDS",
    "SLI_EVENTS_TOTAL",
    "SLI_GOOD_EVENTS_TOTAL",
    "SLI_LABELS",
    "SLI_UNKNOWN_EVENTS_TOTAL",
    "SOURCE_END_OFFSET",
    "SOURCE_RECORDS_TOTAL",
    "SOURCE_START_OFFSET",
    "SOURCE_TRUNCATIONS_TOTAL",
    "STALLED_PARTITIONS",
    "TARGET_END_OFFSET",
    "TARGET_START_OFFSET",
    "TASK_STATE",
    "TOPIC_CONFIG_DRIFT",
    "TOPIC_INFO",
    "TOPIC_MISSING",
    "TOPIC_RECREATIONS_TOTAL",
    "UNASSIGNED_PARTITIONS",
    "UNKNOWN_STEP",
    "WINDOW",
    "WINDOW_SECONDS",
    "Component",
    "Granularity",
    "Metric",
    "MetricType",
    "RecordedSeries",
    "Rollup",
    "metric_named",
]


def _declared_in(module: ModuleType) -> tuple[Metric, ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, Metric))


GROUPS: Mapping[str, tuple[Metric, ...]] = MappingProxyType(
    {
        "Flows": _declared_in(flow_metrics),
        "Heartbeats": _declared_in(heartbeat_metrics),
        "Canary": _declared_in(canary_metrics),
        "Positions": _declared_in(position_metrics),
        "Lag": _declared_in(lag_metrics),
        "Retention": _declared_in(retention_metrics),
        "Drift": _declared_in(drift_metrics),
        "Failover": _declared_in(failover_metrics),
        "Connectors and tasks": _declared_in(connect_metrics),
        "Service-level indicators": _declared_in(sli_metrics),
        "Exporter": _declared_in(exporter_metrics),
        "Process": _declared_in(process_metrics),
    }
)
"""Metrics by subject, in the order of the documentation."""

ALL: tuple[Metric, ...] = tuple(metric for group in GROUPS.values() for metric in group)
"""All metrics, in the order of the exposition."""

BY_NAME: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in ALL})


def metric_named(name: str) -> Metric:
    """The metric *name*. Raises KeyError if the catalogue does not contain it."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise KeyError(f"{name!r} is not in the catalogue of metrics") from None
