"""Panels with possible causes: connectors and tasks, faults of records, faults of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    ASSIGNED_MISSING_PARTITIONS,
    CANARY_DUPLICATES_TOTAL,
    CANARY_LATE_TOTAL,
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CANARY_REORDERED_TOTAL,
    CANARY_UNKNOWN_TOTAL,
    CONNECTOR_STATE,
    OPEN_TRANSACTION_RECORDS,
    PARTITION_DRIFT,
    RETENTION_LOST_RECORDS_TOTAL,
    SOURCE_TRUNCATIONS_TOTAL,
    STALLED_PARTITIONS,
    TASK_STATE,
    TOPIC_CONFIG_DRIFT,
    TOPIC_MISSING,
    TOPIC_RECREATIONS_TOTAL,
    UNASSIGNED_PARTITIONS,
    Metric,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_dashboards.boards.shared_definitions import NO_EXPORTER_DATA
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    MATCH_TOPIC,
    flow_series,
    increase_by,
    max_by,
    state_code,
    sum_by,
)
from mm2slo_dashboards.state_mappings import CONNECT_STATES, WARN_FROM_ONE

if TYPE_CHECKING:
    from mm2slo_core.promql import Vector

_CANARIES: Final = (
    (CANARY_LOST_TOTAL, "canaries lost", Colour.BAD),
    (CANARY_LATE_TOTAL, "canaries late", Colour.WARNING),
    (CANARY_DUPLICATES_TOTAL, "canaries duplicated", Colour.WARNING),
    (CANARY_REORDERED_TOTAL, "canaries reordered", Colour.WARNING),
    (CANARY_MOVED_TOTAL, "canaries moved", Colour.WARNING),
    (CANARY_UNKNOWN_TOTAL, "canaries unknown", Colour.UNKNOWN),
)
_DRIFT: Final = (
    (TOPIC_MISSING, "missing topics"),
    (PARTITION_DRIFT, "partition count differs"),
    (ASSIGNED_MISSING_PARTITIONS, "partitions without a copy"),
    (UNASSIGNED_PARTITIONS, "partitions without a task"),
    (TOPIC_CONFIG_DRIFT, "settings differ"),
)
_LOST: Final = "records lost to retention"


def panels() -> tuple[Panel, ...]:
    """Connectors and tasks, faults of records, faults of topics."""
    task = ("flow", "connector", "task")
    return (
        Panel(
            title="Connector and task states",
            description="Are the connectors and tasks running? Their state in the Connect status "
            "topic. A failed connector starts no tasks, a paused one replicates nothing, and "
            "Connect does not restart a failed task by itself.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data="No connector has reported a state: the status topic is not read, or none "
            "was ever started.",
            queries=(
                Query(
                    vector=state_code(
                        CONNECTOR_STATE, CONNECT_STATES, *task[:2], matchers=(MATCH_FLOW,)
                    ),
                    legend="{{connector}}",
                ),
                Query(
                    vector=state_code(TASK_STATE, CONNECT_STATES, *task, matchers=(MATCH_FLOW,)),
                    legend="{{connector}} {{task}}",
                ),
            ),
            states=CONNECT_STATES,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2TaskFailed",
            width=8,
        ),
        _counts(
            "Record faults",
            "Were records lost, held back or not replicated as they were sent? Partitions that are "
            "stalled and records held back by open transactions now; the others in the selected "
            "time range. Good is 0 of each.",
            NO_EXPORTER_DATA,
            "MM2RecordsLost",
            (_within_range(RETENTION_LOST_RECORDS_TOTAL, "topic"), _LOST),
            (_now(STALLED_PARTITIONS, "topic"), "partitions stalled"),
            (
                _now(OPEN_TRANSACTION_RECORDS, "topic", "partition"),
                "records held back by open transactions",
            ),
            *((_canaries(metric), name) for metric, name, _ in _CANARIES),
            colours={_LOST: Colour.BAD, **{name: colour for _, name, colour in _CANARIES}},
        ),
        _counts(
            "Topic faults",
            "Where do source and target differ, and which topics changed? Differences that "
            "MirrorMaker 2 should have resolved; topics re-created and truncated in the selected "
            "time range. Good is 0 of each.",
            "Topics have not been compared yet.",
            "MM2PartitionDrift",
            *((_now(metric, *_labels(metric)), name) for metric, name in _DRIFT),
            (
                _within_range(TOPIC_RECREATIONS_TOTAL, "topic", "side", by=("side",)),
                "topics re-created on {{side}}",
            ),
            (_within_range(SOURCE_TRUNCATIONS_TOTAL, "topic"), "partitions truncated"),
        ),
    )


def _counts(
    title: str,
    description: str,
    no_data: str,
    alert: str,
    *queries: tuple[Vector, str],
    colours: dict[str, str] | None = None,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.BARS,
        unit=Unit.COUNT,
        no_data=no_data,
        queries=tuple(Query(vector=each, legend=name, instant=True) for each, name in queries),
        colours=colours or {},
        thresholds=WARN_FROM_ONE,
        decimals=0,
        minimum=0.0,
        next_dashboard=DashboardUid.AUDIT,
        alert=alert,
        width=8,
    )


def _now(metric: Metric, *labels: str) -> Vector:
    return sum_by(max_by(flow_series(metric, MATCH_TOPIC), "flow", *labels), "flow")


def _within_range(metric: Metric, *labels: str, by: tuple[str, ...] = ()) -> Vector:
    found = increase_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow", *labels))
    return sum_by(found, "flow", *by)


def _canaries(metric: Metric) -> Vector:
    return sum_by(increase_by(metric, MATCH_FLOW, by=("flow", "carrier")), "flow")


def _labels(metric: Metric) -> tuple[str, ...]:
    return ("topic", "config") if metric is TOPIC_CONFIG_DRIFT else ("topic",)
