"""Panels with lag, throughput, stalled partitions and retention headroom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    CATCHUP_ETA_SECONDS,
    FLOW_LAG_RECORDS,
    FLOW_LAG_SECONDS,
    OPEN_TRANSACTION_RECORDS,
    REPLICATED_RECORDS_TOTAL,
    REPLICATION_LAG_RECORDS,
    REPLICATION_LAG_SECONDS,
    RETENTION_HEADROOM_RECORDS,
    RETENTION_HEADROOM_SECONDS,
    RETENTION_LOST_RECORDS_TOTAL,
    SOURCE_RECORDS_TOTAL,
    STALLED_PARTITIONS,
    Metric,
)
from mm2slo_core.catalogue.audit_result_metrics import AUDIT_RECORD_SIZE_BYTES
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Vector
from mm2slo_core.retention_headroom import HEADROOM_AHEAD, HEADROOM_LEAST
from mm2slo_dashboards.boards.shared_definitions import NO_EXPORTER_DATA
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Thresholds, Unit
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    MATCH_TOPIC,
    bottomk,
    filter_by,
    flow_series,
    increase_by,
    max_by,
    min_by,
    rate_by,
    sum_by,
    topk,
)
from mm2slo_dashboards.state_mappings import BAD_FROM_ONE, bad_from

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits

_PARTITION = ("topic", "partition")
_NAMED = "{{topic}} {{partition}}"
_HEADROOM: Final = Thresholds(
    Colour.BAD, ((HEADROOM_LEAST, Colour.WARNING), (HEADROOM_AHEAD, Colour.GOOD))
)
"""Bounds of `MM2RetentionHeadroomLow`."""


def lag_panels(limits: Limits) -> tuple[Panel, ...]:
    """Lag of the flow and of its worst partitions, throughput, stalled partitions."""
    return (
        _flow_lag(
            FLOW_LAG_SECONDS,
            "Lag over time",
            "How old is the oldest unreplicated record?",
            Unit.SECONDS,
            bad_from(limits.lag),
        ),
        _flow_lag(
            FLOW_LAG_RECORDS,
            "Unreplicated records",
            "How many records are not replicated yet?",
            Unit.COUNT,
            None,
        ),
        Panel(
            title="Time to catch up",
            description="When will the flow have caught up? Time until the lag is gone at the "
            "current net rate; 0 without lag.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data="The lag is not shrinking.",
            queries=(
                Query(vector=max_by(flow_series(CATCHUP_ETA_SECONDS), "flow"), legend="{{flow}}"),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            width=8,
        ),
        _highest_lag(
            REPLICATION_LAG_SECONDS,
            "Highest lag by partition",
            "Which topics or partitions are furthest behind?",
            Unit.SECONDS,
            bad_from(limits.lag),
        ),
        _highest_lag(
            REPLICATION_LAG_RECORDS,
            "Most unreplicated records by partition",
            "Which topics or partitions have most unreplicated records?",
            Unit.COUNT,
            thresholds=None,
        ),
        Panel(
            title="Records written and replicated",
            description="Does the flow keep up? Records per second written on the source and "
            "replicated; both lines should agree.",
            kind=Kind.SERIES,
            unit=Unit.RATE,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(vector=_throughput(SOURCE_RECORDS_TOTAL), legend="written on the source"),
                Query(vector=_throughput(REPLICATED_RECORDS_TOTAL), legend="replicated"),
            ),
            colours={
                "written on the source": Colour.NEUTRAL,
                "replicated": Colour.GOOD,
            },
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
            width=8,
        ),
        Panel(
            title="Bytes written and replicated",
            description="How much data is it? Records per second times the mean record size of "
            "the newest audit (key, value and headers, uncompressed), whose age is on the Audit "
            "dashboard.",
            kind=Kind.SERIES,
            unit=Unit.BYTE_RATE,
            no_data="The flow was not audited, or the report service is not scraped.",
            queries=(
                Query(vector=_bytes(SOURCE_RECORDS_TOTAL), legend="written on the source"),
                Query(vector=_bytes(REPLICATED_RECORDS_TOTAL), legend="replicated"),
            ),
            colours={
                "written on the source": Colour.NEUTRAL,
                "replicated": Colour.GOOD,
            },
            minimum=0.0,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2PartitionStalled",
            width=8,
        ),
        Panel(
            title="Stalled partitions by topic",
            description="Which topics are stalled? Partitions with unreplicated records whose "
            "position does not advance. Good is none, also while the flow as a whole advances.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="No partition is stalled.",
            queries=(
                Query(
                    vector=topk(
                        10,
                        filter_by(
                            max_by(flow_series(STALLED_PARTITIONS, MATCH_TOPIC), "topic"), "> 0"
                        ),
                    ),
                    legend="{{topic}}",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
            fills_on="a stopped MirrorMaker 2",
            width=8,
        ),
        Panel(
            title="Records held back by open transactions",
            description="Does an open transaction hold records back? Records between the last "
            "stable offset and the end offset, by topic. A flow that reads committed records "
            "replicates them when the transaction ends.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="No transaction is open.",
            queries=(
                Query(
                    vector=topk(
                        10,
                        filter_by(
                            sum_by(
                                max_by(
                                    flow_series(OPEN_TRANSACTION_RECORDS, MATCH_TOPIC), *_PARTITION
                                ),
                                "topic",
                            ),
                            "> 0",
                        ),
                    ),
                    legend="{{topic}}",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2TransactionStuck",
            fills_on="an open transaction",
            width=8,
        ),
    )


def loss_panels() -> tuple[Panel, ...]:
    """Retention headroom and certain loss."""
    return (
        Panel(
            title="Retention headroom",
            description="When would retention remove unreplicated records? Time until then by "
            "topic and the limit that applies, the ten smallest.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data="No limit applies: retention is unlimited, or nothing was written yet.",
            queries=(
                Query(
                    vector=bottomk(
                        10,
                        min_by(
                            flow_series(RETENTION_HEADROOM_SECONDS, MATCH_TOPIC),
                            *_PARTITION,
                            "limit",
                        ),
                    ),
                    legend=f"{_NAMED} by {{{{limit}}}}",
                ),
            ),
            thresholds=_HEADROOM,
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RetentionHeadroomLow",
            width=8,
        ),
        Panel(
            title="Retention headroom in records",
            description="How many records are between the source's log start and the position? "
            "The ten smallest. At 0 the next removal is a loss; below 0 records are lost.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=bottomk(
                        10,
                        min_by(flow_series(RETENTION_HEADROOM_RECORDS, MATCH_TOPIC), *_PARTITION),
                    ),
                    legend=_NAMED,
                ),
            ),
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RetentionHeadroomLow",
            width=8,
        ),
        Panel(
            title="Records lost",
            description="How many records are certainly lost? Records that retention removed "
            "before they were replicated, in the selected time range. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=sum_by(
                        increase_by(
                            RETENTION_LOST_RECORDS_TOTAL,
                            MATCH_FLOW,
                            MATCH_TOPIC,
                            by=("flow", "topic"),
                        ),
                        "flow",
                    ),
                    legend="{{flow}}",
                    instant=True,
                ),
            ),
            thresholds=BAD_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2RecordsLost",
            width=8,
        ),
    )


def _flow_lag(
    metric: Metric, title: str, question: str, unit: Unit, thresholds: Thresholds | None
) -> Panel:
    return Panel(
        title=title,
        description=f"{question} {metric.help} It grows while the flow is stopped.",
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER_DATA,
        queries=(Query(vector=max_by(flow_series(metric), "flow"), legend="{{flow}}"),),
        thresholds=thresholds,
        minimum=0.0,
        next_dashboard=DashboardUid.FLEET,
        alert="MM2PartitionStalled",
        width=8,
    )


def _highest_lag(
    metric: Metric, title: str, question: str, unit: Unit, thresholds: Thresholds | None
) -> Panel:
    return Panel(
        title=title,
        description=f"{question} {metric.help} The ten highest by topic and partition, as fine as "
        "the exporter's granularity.",
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER_DATA,
        queries=(
            Query(
                vector=topk(10, max_by(flow_series(metric, MATCH_TOPIC), *_PARTITION)),
                legend=_NAMED,
            ),
        ),
        thresholds=thresholds,
        minimum=0.0,
        next_dashboard=DashboardUid.FLEET,
        alert="MM2PartitionStalled",
        width=8,
    )


def _throughput(metric: Metric) -> Vector:
    return rate_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow",), within="topic")


def _bytes(metric: Metric) -> Vector:
    records, size = _throughput(metric), max_by(flow_series(AUDIT_RECORD_SIZE_BYTES), "flow")
    return Vector(f"{records} * on (flow) {size}", records.labels)
