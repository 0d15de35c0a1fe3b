"""Panels with lag, throughput, retention headroom and certain loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    CATCHUP_ETA_SECONDS,
    FLOW_LAG_SECONDS,
    REPLICATED_RECORDS_TOTAL,
    REPLICATION_LAG_SECONDS,
    RETENTION_HEADROOM_SECONDS,
    SOURCE_RECORDS_TOTAL,
    Metric,
)
from mm2slo_core.catalogue.audit_result_metrics import AUDIT_RECORD_SIZE_BYTES
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Vector
from mm2slo_core.retention_headroom import HEADROOM_AHEAD, HEADROOM_LEAST
from mm2slo_dashboards.boards.shared_definitions import NO_EXPORTER_DATA
from mm2slo_dashboards.colours import LINES, Colour
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Thresholds, Unit
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    MATCH_TOPIC,
    bottomk,
    flow_series,
    max_by,
    min_by,
    rate_by,
    topk,
)
from mm2slo_dashboards.state_mappings import bad_from

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits

_PARTITION = ("topic", "partition")
_NAMED = "{{topic}} {{partition}}"
_HEADROOM: Final = Thresholds(
    Colour.BAD, ((HEADROOM_LEAST, Colour.WARNING), (HEADROOM_AHEAD, Colour.GOOD))
)
"""Bounds of `MM2RetentionHeadroomLow`."""


def panels(limits: Limits) -> tuple[Panel, ...]:
    """Lag of the flow and of its worst partitions, throughput, retention headroom."""
    return (
        Panel(
            title="Lag and time to catch up",
            description="How far behind is the flow, and when will it have caught up? Age of the "
            "oldest unreplicated record, 0 without one; it grows while the flow is stopped. Time "
            "until the lag is gone at the current net rate, absent while it does not shrink. The "
            f"freshness threshold is {limits.lag:g} s.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(vector=max_by(flow_series(FLOW_LAG_SECONDS), "flow"), legend="lag"),
                Query(
                    vector=max_by(flow_series(CATCHUP_ETA_SECONDS), "flow"),
                    legend="time to catch up",
                ),
            ),
            thresholds=bad_from(limits.lag),
            colours=dict(zip(("lag", "time to catch up"), LINES, strict=False)),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
        ),
        Panel(
            title="Highest lag by partition",
            description="Which topics or partitions are furthest behind? "
            f"{REPLICATION_LAG_SECONDS.help} The ten highest by topic and partition, as fine as "
            "the exporter's granularity.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=topk(
                        10, max_by(flow_series(REPLICATION_LAG_SECONDS, MATCH_TOPIC), *_PARTITION)
                    ),
                    legend=_NAMED,
                ),
            ),
            thresholds=bad_from(limits.lag),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
        ),
        _throughput_panel(
            "Records written and replicated",
            "Does the flow keep up? Records per second written on the source and replicated; both "
            "lines should agree.",
            Unit.RATE,
            *(_throughput(each) for each in (SOURCE_RECORDS_TOTAL, REPLICATED_RECORDS_TOTAL)),
            no_data=NO_EXPORTER_DATA,
        ),
        _throughput_panel(
            "Bytes written and replicated",
            "How much data is it? Records per second times the mean record size of the newest "
            "audit (key, value and headers, uncompressed), whose age is on the Audit dashboard.",
            Unit.BYTE_RATE,
            *(_bytes(each) for each in (SOURCE_RECORDS_TOTAL, REPLICATED_RECORDS_TOTAL)),
            no_data="The flow was not audited, or the report service is not scraped.",
        ),
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
    )


def _throughput_panel(
    title: str, description: str, unit: Unit, *vectors: Vector, no_data: str
) -> Panel:
    queries = dict(zip(("written on the source", "replicated"), vectors, strict=True))
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=no_data,
        queries=tuple(Query(vector=each, legend=name) for name, each in queries.items()),
        colours=dict(zip(queries, LINES, strict=False)),
        minimum=0.0,
        next_dashboard=DashboardUid.AUDIT,
        alert="MM2PartitionStalled",
        width=8,
    )


def _throughput(metric: Metric) -> Vector:
    return rate_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow",), within="topic")


def _bytes(metric: Metric) -> Vector:
    records, size = _throughput(metric), max_by(flow_series(AUDIT_RECORD_SIZE_BYTES), "flow")
    return Vector(f"{records} * on (flow) {size}", records.labels)
