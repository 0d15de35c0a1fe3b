"""Panels with possible causes: connectors, tasks, topic drift, canary outcomes."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue import (
    ASSIGNED_MISSING_PARTITIONS,
    CANARY_DUPLICATES_TOTAL,
    CANARY_LATE_TOTAL,
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CANARY_RECEIVED_TOTAL,
    CANARY_REORDERED_TOTAL,
    CANARY_SENT_TOTAL,
    CANARY_UNKNOWN_TOTAL,
    CONNECTOR_STATE,
    HEARTBEATS_MISSING_TOTAL,
    PARTITION_DRIFT,
    REPLICATED_PARTITIONS,
    SOURCE_TRUNCATIONS_TOTAL,
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
from mm2slo_dashboards.state_mappings import CONNECT_STATES, NEUTRAL, WARN_FROM_ONE

_NO_CANARY: Final = "The canary of the flow is off, or no exporter publishes it."
_OUTCOMES: Final = (
    (CANARY_LATE_TOTAL, "late", Colour.WARNING),
    (CANARY_LOST_TOTAL, "lost", Colour.BAD),
    (CANARY_DUPLICATES_TOTAL, "duplicated", Colour.PLANNED),
    (CANARY_REORDERED_TOTAL, "reordered", Colour.RESTING),
    (CANARY_MOVED_TOTAL, "moved", Colour.NEUTRAL),
    (CANARY_UNKNOWN_TOTAL, "unknown", Colour.UNKNOWN),
)
_DRIFT: Final = (
    (TOPIC_MISSING, "missing topics"),
    (PARTITION_DRIFT, "partition count differs"),
    (ASSIGNED_MISSING_PARTITIONS, "partitions without a copy"),
    (UNASSIGNED_PARTITIONS, "partitions without a task"),
    (TOPIC_CONFIG_DRIFT, "settings differ"),
)


def panels() -> tuple[Panel, ...]:
    """Connectors, tasks, canaries, topic drift and quality of positions."""
    return (
        Panel(
            title="Connector states",
            description="Are the connectors running? Their state in the Connect status topic. A "
            "failed connector starts no tasks; a paused one replicates nothing.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data="No connector has reported a state: the status topic is not read, or none "
            "was ever started.",
            queries=(
                Query(
                    vector=state_code(
                        CONNECTOR_STATE, CONNECT_STATES, "flow", "connector", matchers=(MATCH_FLOW,)
                    ),
                    legend="{{connector}}",
                ),
            ),
            states=CONNECT_STATES,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2ConnectorFailed",
        ),
        Panel(
            title="Task states",
            description="Are the tasks running? Their state in the Connect status topic. "
            "Connect does not restart a failed task by itself.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data="No task has reported a state: the status topic is not read, or no task was "
            "ever started.",
            queries=(
                Query(
                    vector=state_code(
                        TASK_STATE,
                        CONNECT_STATES,
                        "flow",
                        "connector",
                        "task",
                        matchers=(MATCH_FLOW,),
                    ),
                    legend="{{connector}} {{task}}",
                ),
            ),
            states=CONNECT_STATES,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2TaskFailed",
        ),
        Panel(
            title="Canary outcomes",
            description="Did canaries arrive once, in time, in order and in their partition? "
            "Those that did not, in the selected time range. Good is 0 of each.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data=_NO_CANARY,
            queries=tuple(
                Query(
                    vector=sum_by(increase_by(metric, MATCH_FLOW, by=("flow", "carrier")), "flow"),
                    legend=legend,
                    instant=True,
                )
                for metric, legend, _ in _OUTCOMES
            ),
            colours={legend: colour for _, legend, colour in _OUTCOMES},
            thresholds=WARN_FROM_ONE,
            decimals=0,
            minimum=0.0,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2CanaryRecordsLost",
            width=8,
        ),
        Panel(
            title="Topic drift",
            description="Where do source and target differ? Differences that MirrorMaker 2 "
            "should have resolved. Good is 0 of each.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data="Topics have not been compared yet.",
            queries=tuple(
                Query(
                    vector=sum_by(
                        max_by(flow_series(metric, MATCH_TOPIC), *_labels(metric)), "flow"
                    ),
                    legend=legend,
                    instant=True,
                )
                for metric, legend in _DRIFT
            ),
            thresholds=WARN_FROM_ONE,
            decimals=0,
            minimum=0.0,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2PartitionDrift",
            width=8,
        ),
        Panel(
            title="Topic changes and missing heartbeats",
            description="Were topics re-created or truncated, or did heartbeats not arrive? "
            "Counts in the selected time range. Good is 0 of each.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=sum_by(
                        increase_by(
                            TOPIC_RECREATIONS_TOTAL,
                            MATCH_FLOW,
                            MATCH_TOPIC,
                            by=("flow", "topic", "side"),
                        ),
                        "flow",
                        "side",
                    ),
                    legend="topics re-created on {{side}}",
                    instant=True,
                ),
                Query(
                    vector=sum_by(
                        increase_by(
                            SOURCE_TRUNCATIONS_TOTAL, MATCH_FLOW, MATCH_TOPIC, by=("flow", "topic")
                        ),
                        "flow",
                    ),
                    legend="partitions truncated",
                    instant=True,
                ),
                Query(
                    vector=increase_by(HEARTBEATS_MISSING_TOTAL, MATCH_FLOW, by=("flow",)),
                    legend="missing heartbeats",
                    instant=True,
                ),
            ),
            thresholds=WARN_FROM_ONE,
            decimals=0,
            minimum=0.0,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2TopicRecreated",
            width=8,
        ),
        Panel(
            title="Canaries sent and received",
            description="Are canaries sent and received? Counts in the selected time range; the "
            "difference is in flight or among the canary outcomes.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_CANARY,
            queries=tuple(
                Query(
                    vector=sum_by(increase_by(metric, MATCH_FLOW, by=("flow", "carrier")), "flow"),
                    legend=legend,
                    instant=True,
                )
                for metric, legend in (
                    (CANARY_SENT_TOTAL, "sent"),
                    (CANARY_RECEIVED_TOTAL, "received"),
                )
            ),
            thresholds=NEUTRAL,
            decimals=0,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2FlowStopped",
            height=5,
        ),
        Panel(
            title="Positions by quality",
            description="How exact are the replicated positions? Partitions by quality of their "
            "position. The lag of a bounded position is an upper bound.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data="No partition is replicated.",
            queries=(
                Query(
                    vector=max_by(flow_series(REPLICATED_PARTITIONS), "quality"),
                    legend="{{quality}}",
                    instant=True,
                ),
            ),
            thresholds=NEUTRAL,
            decimals=0,
            next_dashboard=DashboardUid.PIPELINE,
            height=5,
        ),
    )


def _labels(metric: Metric) -> tuple[str, ...]:
    return ("flow", "topic", "config") if metric is TOPIC_CONFIG_DRIFT else ("flow", "topic")
