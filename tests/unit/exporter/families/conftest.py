"""A complete report of one flow, and its families as lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import COLLECT_BUCKETS, LATENCY_BUCKETS, Granularity
from mm2slo_core.indicators.canary_rules import CanaryTotals
from mm2slo_core.indicators.flow_state import FlowStateName, PartitionProgress
from mm2slo_core.indicators.group_readiness import Blocked, BlockReason, GroupReadiness
from mm2slo_core.indicators.replication_lag import Headroom, LagOrigin, RetentionLimit
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey
from mm2slo_core.mm2_config.running_settings import SettingDifference
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.state_record import RecoveryPoint
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow
from mm2slo_exporter.collection_health import CollectionStage, Durations, HealthReport
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer
from mm2slo_exporter.families.exporter_series import ExporterReport, ReloadOutcome
from mm2slo_exporter.families.family_composer import families
from mm2slo_exporter.state.flow_report import (
    FlowInfo,
    FlowReport,
    FlowTotals,
    GroupState,
    HeartbeatState,
    LatencyHistogram,
    PartitionState,
    TaskState,
    TimelineState,
    TopicState,
    UnjudgedGroups,
)
from mm2slo_exporter.state.group_lag import GroupLag, LagSum
from mm2slo_exporter.supervised_thread import Loop

FLOW_LABELS = 'flow="us->eu",source="us",target="eu"'


def partition(number: int, **changes: Any) -> PartitionState:
    """A partition with a live position ten records behind."""
    whole = PartitionState(
        partition=number,
        source_start=100,
        source_end=1000,
        target_start=90,
        target_end=980,
        next_offset=990,
        quality=PositionQuality.LIVE,
        lag_records=10,
        lag_seconds=2.5,
        lag_origin=LagOrigin.HISTORY,
        progress=PartitionProgress.MOVING,
        progressed_at=9_999.0,
        headroom=Headroom(890, 3600.0, RetentionLimit.TIME),
        sync_upstream=899,
        sync_at=9_940.0,
        open_transaction_records=3,
    )
    return whole._replace(**changes)


def topic(name: str, *partitions: PartitionState, **changes: Any) -> TopicState:
    """A data topic without drift."""
    role = changes.pop("role", TopicRole.DATA)
    whole = TopicState(
        pair=TopicPair(name, f"us.{name}", role),
        partitions=partitions,
        source_partition_count=len(partitions),
        target_partition_count=len(partitions),
        missing_on_target=False,
        config_drift=(),
        assigned_missing=0,
        unassigned=0,
        source_records_total=0,
        replicated_records_total=0,
        lost_records_total=0,
        truncations_total=0,
        source_recreations_total=0,
        target_recreations_total=0,
    )
    return whole._replace(**changes)


def latencies(**observed: int) -> LatencyHistogram:
    """A histogram with *observed* counts by bucket number, as in `_0=2`."""
    counts = [0] * (len(LATENCY_BUCKETS) + 1)
    for name, count in observed.items():
        counts[int(name[1:])] = count
    return LatencyHistogram(tuple(counts), 1.5)


ORDERS = topic(
    "orders",
    partition(0),
    partition(
        1,
        source_start=0,
        source_end=50,
        target_start=0,
        target_end=50,
        next_offset=50,
        quality=PositionQuality.COMMITTED,
        lag_records=0,
        lag_seconds=0.0,
        lag_origin=LagOrigin.NO_BACKLOG,
        progress=PartitionProgress.IDLE,
        progressed_at=10_000.0,
        headroom=Headroom(50, 7200.0, RetentionLimit.SIZE),
        sync_upstream=49,
        sync_at=9_970.0,
        open_transaction_records=0,
    ),
    config_drift=("cleanup.policy", "retention.ms"),
    assigned_missing=2,
    unassigned=1,
    target_partition_count=1,
    source_records_total=1_050,
    replicated_records_total=1_040,
    source_recreations_total=1,
)
PAYMENTS = topic(
    "payments",
    partition(
        0,
        source_start=20,
        source_end=30,
        next_offset=15,
        lag_seconds=300.25,
        lag_origin=LagOrigin.RECORD,
        progress=PartitionProgress.STALLED,
        progressed_at=9_000.0,
        headroom=Headroom(-5, 0.0, RetentionLimit.PASSED),
        sync_upstream=14,
        sync_at=9_000.0,
        open_transaction_records=None,
    ),
    config_drift=("retention.ms",),
    missing_on_target=True,
    target_partition_count=3,
    source_records_total=30,
    replicated_records_total=15,
    lost_records_total=5,
    pending_lost_records=3,
    truncations_total=4,
    target_recreations_total=2,
)
HEARTBEATS = topic(
    "heartbeats",
    partition(
        0,
        lag_records=7,
        progress=PartitionProgress.STALLED,
        headroom=Headroom(-900, -1.0, RetentionLimit.TIME),
    ),
    role=TopicRole.HEARTBEATS,
    config_drift=("cleanup.policy",),
    source_records_total=1_000_000,
    replicated_records_total=1_000_000,
)
CANARY = topic(
    "mm2slo.canary",
    partition(0, lag_records=100, lag_seconds=None, lag_origin=LagOrigin.ABSENT, quality=None),
    role=TopicRole.CANARY,
)
GROUPS = (
    GroupState(
        group="billing",
        readiness=GroupReadiness("billing", True, (), 15, 4, 9, ()),
        checkpoint_at=9_980.0,
        checkpoint_lag_by_topic={"orders": 12, "payments": 3},
        commits_at=9_987.5,
        unreplicated=LagSum(18, 7.5),
    ),
    GroupState(
        group="audit",
        readiness=GroupReadiness(
            "audit",
            False,
            (Blocked(BlockReason.NO_CHECKPOINT), Blocked(BlockReason.SOURCE_UNREADABLE)),
            None,
            None,
            None,
            (),
            (0, 7),
        ),
        checkpoint_at=None,
        checkpoint_lag_by_topic={},
    ),
)
GROUP_LAGS = (
    GroupLag(
        "billing",
        "us",
        {"orders": LagSum(12, 1.5), "payments": LagSum(3, None)},
        "stable",
        2,
    ),
    GroupLag("audit", "eu", {"orders": LagSum(None, None)}, "empty", 0),
    GroupLag("target-only", "eu", {"orders": LagSum(0, 0.0)}),
)
REPORT = FlowReport(
    flow=Flow("us", "eu"),
    info=FlowInfo(policy="default", separator=".", engine="mirrormaker2", canary="heartbeats"),
    overridden=(SettingDifference("isolation", "read_uncommitted", "read_committed"),),
    at=10_000.0,
    state=FlowStateName.RUNNING,
    state_reason="position_advances",
    ready=True,
    waiting_for=(),
    source_readable=True,
    target_readable=True,
    topics=(ORDERS, PAYMENTS, HEARTBEATS, CANARY),
    # A topic that was deleted had 70 records.
    totals=FlowTotals(
        source_records_total=1_150,
        replicated_records_total=1_125,
        lost_records_total=5,
        truncations_total=4,
        source_recreations_total=1,
        target_recreations_total=2,
    ),
    groups=GROUPS,
    unjudged_groups=UnjudgedGroups(("connect-a", "connect-b"), ("idle",), True),
    group_lags=GROUP_LAGS,
    tasks=(
        TaskState("MirrorSourceConnector", None, "RUNNING"),
        TaskState("MirrorSourceConnector", 0, "FAILED"),
    ),
    heartbeats=HeartbeatState(
        present=True, newest_at=9_998.5, age_seconds=1.5, received_total=600, missing_total=2
    ),
    heartbeat_latency=latencies(_0=2, _3=1, _16=1),
    canary=CanaryTotals(
        sent=100,
        received=95,
        late=4,
        lost=1,
        expired=2,
        duplicates=3,
        reordered=5,
        moved=6,
        unknown=7,
    ),
    canary_pending=8,
    canary_latency=latencies(_1=90, _2=5),
    canary_arrived_at=9_999.75,
    slis={
        SliKey(Sli.AVAILABILITY): SliCount(91, 95, 7),
        SliKey(Sli.LATENCY, "10s"): SliCount(0, 0, 0),
    },
    lag_records=20,
    lag_seconds=300.25,
    recovery_point=RecoveryPoint(20, 300.25, 9_999.5),
    catch_up_seconds=12.5,
    timeline=TimelineState(writer=True, records_total=44, bytes_total=5_000),
    arrival_bracket=0.27,
    history_since=940.0,
    skipped_rounds=3,
)
OWN = ExporterReport(
    version="1.2.3",
    health=HealthReport(
        last_success={
            ("us", CollectionStage.END_OFFSETS): 9_999.0,
            ("eu", CollectionStage.GROUPS): 9_990.0,
        },
        errors={
            ("us", CollectionStage.END_OFFSETS, "timeout"): 0,
            ("eu", CollectionStage.GROUPS, "denied"): 3,
        },
        durations={
            ("us", CollectionStage.END_OFFSETS): Durations(
                (2, 1, *(0 for _ in COLLECT_BUCKETS[2:]), 1), 45.0
            )
        },
        malformed={("eu", "checkpoint", "truncated"): 1},
        loop_failures={Loop.PROBES: 2},
        listing_intervals={"us": 2.5},
    ),
    process={
        catalogue.PROCESS_RESIDENT_MEMORY_BYTES: [((), 64_000_000)],
        catalogue.PROCESS_CPU_SECONDS_TOTAL: [((), 3.25)],
        catalogue.PROCESS_START_TIME_SECONDS: [((), 5_000.0)],
        catalogue.PROCESS_VIRTUAL_MEMORY_BYTES: [((), 128_000_000)],
        catalogue.PROCESS_OPEN_FDS: [((), 40)],
        catalogue.PROCESS_MAX_FDS: [((), 1024)],
        catalogue.PYTHON_INFO: [(("3.11.7", "CPython", "3", "11", "7"), 1)],
    },
    kafka_requests={("us", "list_offsets"): 12},
    reloads={ReloadOutcome.SUCCESS: 2},
    render_seconds=0.25,
    cycle_seconds=0.5,
)


@dataclass(frozen=True)
class Published:
    """The sample lines of an exposition by metric, without the flow's labels."""

    lines: tuple[str, ...]

    def of(self, metric: str) -> list[str]:
        """Labels and values of *metric*, in their order."""
        starts = tuple(f"{metric}{suffix}" for suffix in ("{", " ", "_bucket{", "_sum", "_count"))
        return [
            line.replace(FLOW_LABELS + ",", "").replace("{" + FLOW_LABELS + "}", "")[len(metric) :]
            for line in self.lines
            if line.startswith(starts)
        ]


class Publisher:
    """Builds families and renders them with the real renderer."""

    report = REPORT
    own = OWN
    partition = staticmethod(partition)
    topic = staticmethod(topic)

    def changed(self, **changes: Any) -> FlowReport:
        """The report with *changes*."""
        return replace(REPORT, **changes)

    def publish(
        self,
        granularity: Granularity = Granularity.TOPIC,
        reports: Sequence[FlowReport] = (REPORT,),
    ) -> Published:
        """The exposition of *reports*."""
        snapshot = Renderer().render(families(reports, OWN, granularity))
        body = b"".join(snapshot.body(ExpositionFormat.CLASSIC, Encoding.IDENTITY).chunks).decode()
        return Published(tuple(line for line in body.splitlines() if not line.startswith("#")))

    def publish_changed(
        self, granularity: Granularity = Granularity.TOPIC, **changes: Any
    ) -> Published:
        """The exposition of the report with *changes*."""
        return self.publish(granularity, (self.changed(**changes),))


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()
