"""The exact samples of every family, from one complete report, by granularity."""

from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity

FLOW, TOPIC, PARTITION = Granularity.FLOW, Granularity.TOPIC, Granularity.PARTITION

CONNECT_STATES = (
    "unassigned",
    "running",
    "paused",
    "failed",
    "destroyed",
    "restarting",
    "stopped",
)

# Equal at all granularities: (metric, its lines without name and flow labels).
ALIKE: list[tuple[catalogue.Metric, list[str]]] = [
    (
        catalogue.FLOW_INFO,
        [
            '{policy="default",separator=".",engine="mirrormaker2",canary="heartbeats",'
            'heartbeats="enabled"} 1'
        ],
    ),
    (catalogue.FLOW_SETTING_OVERRIDDEN, ['{setting="isolation"} 1']),
    (catalogue.FLOW_OBSERVED_TIMESTAMP_SECONDS, [" 10000.0"]),
    (
        catalogue.FLOW_STATE,
        [
            '{state="running"} 1',
            '{state="idle"} 0',
            '{state="stopped"} 0',
            '{state="unknown"} 0',
        ],
    ),
    (catalogue.FLOW_LAG_RECORDS, [" 20"]),
    (catalogue.RETENTION_PENDING_LOST_RECORDS, [" 3"]),
    (catalogue.EXPORTER_HISTORY_START_TIMESTAMP_SECONDS, [" 940.0"]),
    (catalogue.FLOW_LAG_SECONDS, [" 300.25"]),
    (catalogue.CATCHUP_ETA_SECONDS, [" 12.5"]),
    (
        catalogue.REPLICATED_PARTITIONS,
        [
            '{quality="live"} 2',
            '{quality="committed"} 1',
            '{quality="stale"} 0',
            '{quality="not_started"} 0',
            '{quality="foreign_writer"} 0',
            '{quality="shared_target"} 0',
            '{quality="exactly_once"} 0',
            '{quality="target_reset"} 0',
            '{quality="source_reset"} 0',
            '{quality="renamed_copy"} 0',
            '{quality="filtered"} 0',
            '{quality="bounded"} 0',
        ],
    ),
    (
        catalogue.LAG_SECONDS_ORIGIN_PARTITIONS,
        [
            '{origin="no_backlog"} 1',
            '{origin="history"} 1',
            '{origin="record"} 1',
            '{origin="pending"} 0',
            '{origin="absent"} 0',
        ],
    ),
    (catalogue.HEARTBEATS_PRESENT, [" 1"]),
    (catalogue.HEARTBEAT_LAST_TIMESTAMP_SECONDS, [" 9998.5"]),
    (catalogue.HEARTBEAT_AGE_SECONDS, [" 1.5"]),
    (catalogue.HEARTBEATS_RECEIVED_TOTAL, [" 600"]),
    (catalogue.HEARTBEATS_MISSING_TOTAL, [" 2"]),
    (catalogue.CANARY_SENT_TOTAL, ['{carrier="heartbeats"} 100']),
    (catalogue.CANARY_RECEIVED_TOTAL, ['{carrier="heartbeats"} 95']),
    (catalogue.CANARY_LATE_TOTAL, ['{carrier="heartbeats"} 4']),
    (catalogue.CANARY_LOST_TOTAL, ['{carrier="heartbeats"} 1']),
    (catalogue.CANARY_EXPIRED_TOTAL, ['{carrier="heartbeats"} 2']),
    (catalogue.CANARY_DUPLICATES_TOTAL, ['{carrier="heartbeats"} 3']),
    (catalogue.CANARY_REORDERED_TOTAL, ['{carrier="heartbeats"} 5']),
    (catalogue.CANARY_MOVED_TOTAL, ['{carrier="heartbeats"} 6']),
    (catalogue.CANARY_UNKNOWN_TOTAL, ['{carrier="heartbeats"} 7']),
    (catalogue.CANARY_PENDING, ['{carrier="heartbeats"} 8']),
    (catalogue.CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS, ['{carrier="heartbeats"} 9999.75']),
    (catalogue.CHECKPOINT_LAST_TIMESTAMP_SECONDS, ['{group="billing"} 9980.0']),
    (catalogue.CHECKPOINT_AGE_SECONDS, ['{group="billing"} 20.0']),
    (
        catalogue.FAILOVER_REDELIVERY_RECORDS,
        ['{group="billing",bound="lower"} 4', '{group="billing",bound="upper"} 9'],
    ),
    (
        catalogue.FAILOVER_SKIPPED_RECORDS,
        ['{group="audit",bound="lower"} 0', '{group="audit",bound="upper"} 7'],
    ),
    (catalogue.FAILOVER_COMMITS_AGE_SECONDS, ['{group="billing"} 12.5']),
    (catalogue.FAILOVER_UNREPLICATED_RECORDS, [" 20"]),
    (catalogue.FAILOVER_UNREPLICATED_SECONDS, [" 300.25"]),
    (catalogue.FAILOVER_UNREPLICATED_AGE_SECONDS, [" 0.5"]),
    (catalogue.FAILOVER_GROUP_UNREPLICATED_RECORDS, ['{group="billing"} 18']),
    (catalogue.FAILOVER_GROUP_UNREPLICATED_SECONDS, ['{group="billing"} 7.5']),
    (catalogue.FAILOVER_READY, ['{group="billing"} 1', '{group="audit"} 0']),
    (
        catalogue.FAILOVER_BLOCKED,
        [
            '{group="audit",reason="no_checkpoint"} 1',
            '{group="audit",reason="source_unreadable"} 1',
        ],
    ),
    (
        catalogue.FAILOVER_UNJUDGED_GROUPS,
        ['{reason="excluded"} 2', '{reason="without_commits"} 1'],
    ),
    (catalogue.FAILOVER_GROUP_TYPES_KNOWN, [" 1"]),
    (
        catalogue.GROUP_STATE,
        [
            '{cluster="us",group="billing",state="stable"} 1',
            '{cluster="eu",group="audit",state="empty"} 1',
        ],
    ),
    (
        catalogue.GROUP_MEMBERS,
        [
            '{cluster="us",group="billing"} 2',
            '{cluster="eu",group="audit"} 0',
        ],
    ),
    (
        catalogue.CONNECTOR_STATE,
        [
            f'{{connector="MirrorSourceConnector",state="{state}"}} {int(state == "running")}'
            for state in CONNECT_STATES
        ],
    ),
    (
        catalogue.TASK_STATE,
        [
            f'{{connector="MirrorSourceConnector",task="0",state="{state}"}} '
            f"{int(state == 'failed')}"
            for state in CONNECT_STATES
        ],
    ),
    (
        catalogue.SLI_GOOD_EVENTS_TOTAL,
        ['{sli="availability",tier="all"} 91', '{sli="latency",tier="10s"} 0'],
    ),
    (
        catalogue.SLI_EVENTS_TOTAL,
        ['{sli="availability",tier="all"} 95', '{sli="latency",tier="10s"} 0'],
    ),
    (
        catalogue.SLI_UNKNOWN_EVENTS_TOTAL,
        ['{sli="availability",tier="all"} 7', '{sli="latency",tier="10s"} 0'],
    ),
    (catalogue.EXPORTER_FLOW_READY, [" 1"]),
    (catalogue.EXPORTER_TIMELINE_WRITER, [" 1"]),
    (catalogue.EXPORTER_TIMELINE_BYTES_TOTAL, [" 5000"]),
    (catalogue.EXPORTER_TIMELINE_RECORDS_TOTAL, [" 44"]),
    (catalogue.EXPORTER_ARRIVAL_BRACKET_SECONDS, [" 0.27"]),
    (catalogue.EXPORTER_BUILD_INFO, ['{version="1.2.3"} 1']),
    (
        catalogue.EXPORTER_COLLECT_ERRORS_TOTAL,
        [
            '{cluster="eu",stage="groups",reason="denied"} 3',
            '{cluster="us",stage="end_offsets",reason="timeout"} 0',
        ],
    ),
    (
        catalogue.EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
        [
            '{cluster="eu",stage="groups"} 9990.0',
            '{cluster="us",stage="end_offsets"} 9999.0',
        ],
    ),
    (catalogue.EXPORTER_TOPICS_INTERVAL_SECONDS, ['{cluster="us"} 2.5']),
    (catalogue.EXPORTER_KAFKA_REQUESTS_TOTAL, ['{cluster="us",api="list_offsets"} 12']),
    (catalogue.EXPORTER_LOOP_FAILURES_TOTAL, ['{loop="probes"} 2']),
    (catalogue.EXPORTER_SKIPPED_ROUNDS_TOTAL, [" 3"]),
    (catalogue.EXPORTER_HIDDEN_GROUPS, [" 0"]),
    (
        catalogue.EXPORTER_MALFORMED_RECORDS_TOTAL,
        ['{cluster="eu",kind="checkpoint",reason="truncated"} 1'],
    ),
    (catalogue.EXPORTER_RENDER_DURATION_SECONDS, [" 0.25"]),
    (catalogue.EXPORTER_CYCLE_DURATION_SECONDS, [" 0.5"]),
    (
        catalogue.EXPORTER_CONFIG_RELOADS_TOTAL,
        ['{result="success"} 2', '{result="failure"} 0'],
    ),
    (catalogue.PROCESS_RESIDENT_MEMORY_BYTES, [" 64000000"]),
    (catalogue.PROCESS_CPU_SECONDS_TOTAL, [" 3.25"]),
    (catalogue.PROCESS_START_TIME_SECONDS, [" 5000.0"]),
    (catalogue.PROCESS_VIRTUAL_MEMORY_BYTES, [" 128000000"]),
    (catalogue.PROCESS_OPEN_FDS, [" 40"]),
    (catalogue.PROCESS_MAX_FDS, [" 1024"]),
    (
        catalogue.PYTHON_INFO,
        [
            '{version="3.11.7",implementation="CPython",major="3",minor="11",patchlevel="7"} 1',
        ],
    ),
]


def by_topic(
    metric: catalogue.Metric, flow: float, orders: float, payments: float, *others: float
) -> list[tuple[catalogue.Metric, Granularity, list[str]]]:
    """Cases of a per-topic metric, equal at topic and partition level."""
    names = ("orders", "payments", "heartbeats", "mm2slo.canary")
    values = (orders, payments, *others)
    lines = [f'{{topic="{name}"}} {value}' for name, value in zip(names, values, strict=True)]
    return [(metric, FLOW, [f" {flow}"]), (metric, TOPIC, lines), (metric, PARTITION, lines)]


def by_partition(
    metric: catalogue.Metric,
    orders: float,
    partitions: tuple[float | None, float | None, float | None, float | None, float | None],
    flow: float | None = None,
) -> list[tuple[catalogue.Metric, Granularity, list[str]]]:
    """Cases of a per-partition metric: both of `orders`, then one of each other topic."""
    first, second, *others = partitions
    singles = [
        (name, value)
        for name, value in zip(("payments", "heartbeats", "mm2slo.canary"), others, strict=True)
        if value is not None
    ]
    topics = [
        f'{{topic="orders"}} {orders}',
        *(f'{{topic="{name}"}} {value}' for name, value in singles),
    ]
    lines = [
        f'{{topic="orders",partition="0"}} {first}',
        f'{{topic="orders",partition="1"}} {second}',
        *(f'{{topic="{name}",partition="0"}} {value}' for name, value in singles),
    ]
    whole = [] if flow is None else [f" {flow}"]
    return [(metric, FLOW, whole), (metric, TOPIC, topics), (metric, PARTITION, lines)]


INFO = [
    '{topic="orders",target_topic="us.orders"} 1',
    '{topic="payments",target_topic="us.payments"} 1',
    '{topic="heartbeats",target_topic="us.heartbeats"} 1',
    '{topic="mm2slo.canary",target_topic="us.mm2slo.canary"} 1',
]
CONFIG_DRIFT = [
    '{topic="orders",config="cleanup.policy"} 1',
    '{topic="orders",config="retention.ms"} 1',
    '{topic="payments",config="retention.ms"} 1',
    '{topic="heartbeats",config="cleanup.policy"} 1',
]
CHECKPOINT_LAG = [
    '{group="billing",topic="orders"} 12',
    '{group="billing",topic="payments"} 3',
]
GROUP_LAG = [
    '{cluster="us",group="billing",topic="orders"} 12',
    '{cluster="us",group="billing",topic="payments"} 3',
    '{cluster="eu",group="target-only",topic="orders"} 0',
]
GROUP_LAG_SECONDS = [
    '{cluster="us",group="billing",topic="orders"} 1.5',
    '{cluster="eu",group="target-only",topic="orders"} 0.0',
]
GROUP_LAG_OF_FLOW = ['{cluster="us",group="billing"} 15', '{cluster="eu",group="target-only"} 0']
GROUP_LAG_SECONDS_OF_FLOW = [
    '{cluster="us",group="billing"} 1.5',
    '{cluster="eu",group="target-only"} 0.0',
]
RECREATIONS = [
    '{topic="orders",side="source"} 1',
    '{topic="payments",side="source"} 0',
    '{topic="orders",side="target"} 0',
    '{topic="payments",side="target"} 2',
    '{topic="heartbeats",side="source"} 0',
    '{topic="mm2slo.canary",side="source"} 0',
    '{topic="heartbeats",side="target"} 0',
    '{topic="mm2slo.canary",side="target"} 0',
]
BY_LEVEL: list[tuple[catalogue.Metric, Granularity, list[str]]] = [
    (catalogue.TOPIC_INFO, FLOW, []),
    (catalogue.TOPIC_INFO, TOPIC, INFO),
    (catalogue.TOPIC_INFO, PARTITION, INFO),
    *by_partition(catalogue.SOURCE_END_OFFSET, 1050, (1000, 50, 30, 1000, 1000)),
    *by_partition(catalogue.SOURCE_START_OFFSET, 100, (100, 0, 20, 100, 100)),
    *by_partition(catalogue.TARGET_END_OFFSET, 1030, (980, 50, 980, 980, 980)),
    *by_partition(catalogue.TARGET_START_OFFSET, 90, (90, 0, 90, 90, 90)),
    *by_partition(catalogue.REPLICATED_SOURCE_OFFSET, 1040, (990, 50, 15, 990, 990)),
    (catalogue.POSITION_QUALITY, FLOW, []),
    (catalogue.POSITION_QUALITY, TOPIC, []),
    (
        catalogue.POSITION_QUALITY,
        PARTITION,
        [
            '{topic="orders",partition="0",quality="live"} 1',
            '{topic="orders",partition="1",quality="committed"} 1',
            '{topic="payments",partition="0",quality="live"} 1',
            '{topic="heartbeats",partition="0",quality="live"} 1',
        ],
    ),
    *by_topic(catalogue.SOURCE_RECORDS_TOTAL, 1150, 1050, 30, 1_000_000, 0),
    *by_topic(catalogue.REPLICATED_RECORDS_TOTAL, 1125, 1040, 15, 1_000_000, 0),
    *by_partition(catalogue.REPLICATION_LAG_RECORDS, 10, (10, 0, 10, 7, 100)),
    *by_partition(catalogue.REPLICATION_LAG_SECONDS, 2.5, (2.5, 0.0, 300.25, 2.5, None)),
    *by_partition(
        catalogue.REPLICATION_PROGRESS_TIMESTAMP_SECONDS,
        10_000.0,
        (9999.0, 10_000.0, 9000.0, 9999.0, 9999.0),
    ),
    *by_partition(catalogue.OPEN_TRANSACTION_RECORDS, 3, (3, 0, None, 3, 3)),
    *by_topic(catalogue.STALLED_PARTITIONS, 1, 0, 1, 1, 0),
    *by_partition(catalogue.PARTITION_STALLED, 0, (0, 0, 1, 1, 0))[2:],
    (catalogue.PARTITION_STALLED, TOPIC, []),
    *by_partition(catalogue.RETENTION_HEADROOM_RECORDS, 50, (890, 50, -5, -900, 890), -5),
    (
        catalogue.RETENTION_HEADROOM_SECONDS,
        FLOW,
        ['{limit="passed"} 0.0', '{limit="size"} 7200.0', '{limit="time"} 3600.0'],
    ),
    (
        catalogue.RETENTION_HEADROOM_SECONDS,
        TOPIC,
        [
            '{topic="orders",limit="size"} 7200.0',
            '{topic="orders",limit="time"} 3600.0',
            '{topic="payments",limit="passed"} 0.0',
            '{topic="heartbeats",limit="time"} -1.0',
            '{topic="mm2slo.canary",limit="time"} 3600.0',
        ],
    ),
    (
        catalogue.RETENTION_HEADROOM_SECONDS,
        PARTITION,
        [
            '{topic="orders",partition="0",limit="time"} 3600.0',
            '{topic="orders",partition="1",limit="size"} 7200.0',
            '{topic="payments",partition="0",limit="passed"} 0.0',
            '{topic="heartbeats",partition="0",limit="time"} -1.0',
            '{topic="mm2slo.canary",partition="0",limit="time"} 3600.0',
        ],
    ),
    *by_topic(catalogue.RETENTION_LOST_RECORDS_TOTAL, 5, 0, 5, 0, 0),
    *by_topic(catalogue.TOPIC_MISSING, 1, 0, 1, 0, 0),
    *by_topic(catalogue.PARTITION_DRIFT, 3, 1, 2, 0, 0),
    (
        catalogue.TOPIC_CONFIG_DRIFT,
        FLOW,
        ['{config="cleanup.policy"} 1', '{config="retention.ms"} 2'],
    ),
    (catalogue.TOPIC_CONFIG_DRIFT, TOPIC, CONFIG_DRIFT),
    (catalogue.TOPIC_CONFIG_DRIFT, PARTITION, CONFIG_DRIFT),
    *by_topic(catalogue.ASSIGNED_MISSING_PARTITIONS, 2, 2, 0, 0, 0),
    *by_topic(catalogue.UNASSIGNED_PARTITIONS, 1, 1, 0, 0, 0),
    *by_topic(catalogue.SOURCE_TRUNCATIONS_TOTAL, 4, 0, 4, 0, 0),
    (catalogue.TOPIC_RECREATIONS_TOTAL, FLOW, ['{side="source"} 1', '{side="target"} 2']),
    (catalogue.TOPIC_RECREATIONS_TOTAL, TOPIC, RECREATIONS),
    (catalogue.TOPIC_RECREATIONS_TOTAL, PARTITION, RECREATIONS),
    *by_partition(
        catalogue.OFFSET_SYNC_LAST_TIMESTAMP_SECONDS,
        9970.0,
        (9940.0, 9970.0, 9000.0, 9940.0, 9940.0),
    ),
    *by_partition(catalogue.OFFSET_SYNC_GAP_RECORDS, 90, (90, 0, 0, 90, 90)),
    (catalogue.CHECKPOINT_LAG_RECORDS, FLOW, ['{group="billing"} 15']),
    (catalogue.CHECKPOINT_LAG_RECORDS, TOPIC, CHECKPOINT_LAG),
    (catalogue.CHECKPOINT_LAG_RECORDS, PARTITION, CHECKPOINT_LAG),
    (catalogue.GROUP_LAG_RECORDS, FLOW, GROUP_LAG_OF_FLOW),
    (catalogue.GROUP_LAG_RECORDS, TOPIC, GROUP_LAG),
    (catalogue.GROUP_LAG_RECORDS, PARTITION, GROUP_LAG),
    (catalogue.GROUP_LAG_SECONDS, FLOW, GROUP_LAG_SECONDS_OF_FLOW),
    (catalogue.GROUP_LAG_SECONDS, TOPIC, GROUP_LAG_SECONDS),
    (catalogue.GROUP_LAG_SECONDS, PARTITION, GROUP_LAG_SECONDS),
    *(
        (
            catalogue.EXPORTER_GRANULARITY,
            level,
            [
                f'{{granularity="{name}"}} {int(name == level.label)}'
                for name in ("flow", "topic", "partition")
            ],
        )
        for level in Granularity
    ),
]
CUMULATIVE: list[tuple[catalogue.Metric, str, list[int], float]] = [
    (catalogue.HEARTBEAT_LATENCY_SECONDS, "", [2, 2, 2, *[3] * 13, 4], 1.5),
    (catalogue.CANARY_LATENCY_SECONDS, 'carrier="heartbeats"', [0, 90, *[95] * 15], 1.5),
    (
        catalogue.EXPORTER_COLLECT_DURATION_SECONDS,
        'cluster="us",stage="end_offsets"',
        [2, *[3] * 11, 4],
        45.0,
    ),
]


@pytest.mark.parametrize("granularity", Granularity)
@pytest.mark.parametrize(("metric", "lines"), ALIKE, ids=lambda value: getattr(value, "name", ""))
def test_flow_and_exporter_series_are_equal_at_all_granularities(
    publisher: Any, metric: catalogue.Metric, lines: list[str], granularity: Granularity
) -> None:
    assert publisher.publish(granularity).of(metric.name) == lines


@pytest.mark.parametrize(
    ("metric", "granularity", "lines"), BY_LEVEL, ids=lambda value: getattr(value, "name", "")
)
def test_topic_and_partition_series_are_rolled_up(
    publisher: Any, metric: catalogue.Metric, granularity: Granularity, lines: list[str]
) -> None:
    assert publisher.publish(granularity).of(metric.name) == lines


@pytest.mark.parametrize(("metric", "labels", "counts", "total"), CUMULATIVE)
def test_histograms_are_cumulative(
    publisher: Any, metric: catalogue.Metric, labels: str, counts: list[int], total: float
) -> None:
    bounds = [*map(repr, metric.buckets), "+Inf"]
    # Without the flow's labels, only `le` remains if the metric has no other labels.
    alone = f"{{{labels}}}" if labels else ""
    before = f"{labels}," if labels else ""
    assert publisher.publish().of(metric.name) == [
        *(
            f'_bucket{{{before}le="{bound}"}} {count}'
            for bound, count in zip(bounds, counts, strict=True)
        ),
        f"_sum{alone} {total}",
        f"_count{alone} {counts[-1]}",
    ]


def test_expected_samples_cover_all_metrics() -> None:
    tried = {metric for metric, *_ in (*ALIKE, *BY_LEVEL, *CUMULATIVE)}
    assert set(catalogue.ALL) - tried == {catalogue.EXPORTER_SERIES}
