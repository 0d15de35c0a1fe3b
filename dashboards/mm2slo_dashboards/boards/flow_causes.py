"""What may cause a flow's symptoms: connectors and tasks, differences of topics, canaries."""

from __future__ import annotations

from typing import Final

from mm2slo_core.boards import Board as Identity
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
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import (
    IN_FLOW,
    IN_TOPIC,
    coded,
    growth,
    of_flow,
    total,
    worst,
)
from mm2slo_dashboards.states import CONNECT_STATES, NEUTRAL, NONE_IS_BEST

_NO_CANARY: Final = "The canary of the flow is off, or nothing publishes it."
_FATES: Final = (
    (CANARY_LATE_TOTAL, "late", Colour.WARNING),
    (CANARY_LOST_TOTAL, "lost", Colour.BAD),
    (CANARY_DUPLICATES_TOTAL, "twice", Colour.PLANNED),
    (CANARY_REORDERED_TOTAL, "out of order", Colour.RESTING),
    (CANARY_MOVED_TOTAL, "in another partition", Colour.NEUTRAL),
    (CANARY_UNKNOWN_TOTAL, "fate unknown", Colour.UNKNOWN),
)
_DRIFT: Final = (
    (TOPIC_MISSING, "topics missing"),
    (PARTITION_DRIFT, "partitions differ"),
    (ASSIGNED_MISSING_PARTITIONS, "partitions without a copy"),
    (UNASSIGNED_PARTITIONS, "partitions without a task"),
    (TOPIC_CONFIG_DRIFT, "settings differ"),
)


def panels() -> tuple[Panel, ...]:
    """Connectors, tasks, canaries' fates, differences, and how well positions are known."""
    return (
        Panel(
            title="Do the connectors run?",
            description="The state that MirrorMaker 2's status topic gives each connector. A "
            "failed one starts no tasks; a paused one copies nothing.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data="No connector has reported a state: the status topic is not read, or nothing "
            "was ever started.",
            queries=(
                Query(
                    vector=coded(
                        CONNECTOR_STATE, CONNECT_STATES, "flow", "connector", matchers=(IN_FLOW,)
                    ),
                    legend="{{connector}}",
                ),
            ),
            states=CONNECT_STATES,
            leads=Identity.PIPELINE,
            alert="MM2ConnectorFailed",
        ),
        Panel(
            title="Do the tasks run?",
            description="The state that MirrorMaker 2's status topic gives each task. Connect "
            "does not restart a failed one by itself.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data="No task has reported a state: the status topic is not read, or no task was "
            "ever started.",
            queries=(
                Query(
                    vector=coded(
                        TASK_STATE,
                        CONNECT_STATES,
                        "flow",
                        "connector",
                        "task",
                        matchers=(IN_FLOW,),
                    ),
                    legend="{{connector}} {{task}}",
                ),
            ),
            states=CONNECT_STATES,
            leads=Identity.PIPELINE,
            alert="MM2TaskFailed",
        ),
        Panel(
            title="What became of the canaries?",
            description="Canaries within the time that is shown that did not arrive once, in time, "
            "in order and in their partition. Good is 0 of each.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data=_NO_CANARY,
            queries=tuple(
                Query(
                    vector=total(growth(metric, IN_FLOW, by=("flow", "carrier")), "flow"),
                    legend=word,
                    instant=True,
                )
                for metric, word, _ in _FATES
            ),
            colours={word: colour for _, word, colour in _FATES},
            steps=NONE_IS_BEST,
            decimals=0,
            least=0.0,
            leads=Identity.AUDIT,
            alert="MM2CanaryRecordsLost",
            width=8,
        ),
        Panel(
            title="Where do the clusters differ?",
            description="Differences between source and target that MirrorMaker 2 should have "
            "closed. Good is 0 of each.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data="Topics of the clusters have not been compared yet.",
            queries=tuple(
                Query(
                    vector=total(worst(of_flow(metric, IN_TOPIC), *_labels(metric)), "flow"),
                    legend=word,
                    instant=True,
                )
                for metric, word in _DRIFT
            ),
            steps=NONE_IS_BEST,
            decimals=0,
            least=0.0,
            leads=Identity.PIPELINE,
            alert="MM2PartitionDrift",
            width=8,
        ),
        Panel(
            title="What happened to topics and heartbeats?",
            description="Topics that were made anew or cut off, and heartbeats that were due and "
            "did not arrive, in the time that is shown. Good is 0 of each.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data="Nothing publishes the flow.",
            queries=(
                Query(
                    vector=total(
                        growth(
                            TOPIC_RECREATIONS_TOTAL, IN_FLOW, IN_TOPIC, by=("flow", "topic", "side")
                        ),
                        "flow",
                        "side",
                    ),
                    legend="topics made anew on the {{side}}",
                    instant=True,
                ),
                Query(
                    vector=total(
                        growth(SOURCE_TRUNCATIONS_TOTAL, IN_FLOW, IN_TOPIC, by=("flow", "topic")),
                        "flow",
                    ),
                    legend="partitions cut off",
                    instant=True,
                ),
                Query(
                    vector=growth(HEARTBEATS_MISSING_TOTAL, IN_FLOW, by=("flow",)),
                    legend="heartbeats missing",
                    instant=True,
                ),
            ),
            steps=NONE_IS_BEST,
            decimals=0,
            least=0.0,
            leads=Identity.PIPELINE,
            alert="MM2TopicRecreated",
            width=8,
        ),
        Panel(
            title="Do canaries go out and arrive?",
            description="Canaries sent and received within the time that is shown; the difference "
            "is on its way, or in the panel about their fates.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_CANARY,
            queries=tuple(
                Query(
                    vector=total(growth(metric, IN_FLOW, by=("flow", "carrier")), "flow"),
                    legend=word,
                    instant=True,
                )
                for metric, word in (
                    (CANARY_SENT_TOTAL, "sent"),
                    (CANARY_RECEIVED_TOTAL, "received"),
                )
            ),
            steps=NEUTRAL,
            decimals=0,
            leads=Identity.AUDIT,
            alert="MM2FlowStopped",
            height=5,
        ),
        Panel(
            title="How well are positions known?",
            description="Partitions by how exactly their replicated position is known. Lag of "
            "partitions with a bounded position errs high.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data="No partition is replicated.",
            queries=(
                Query(
                    vector=worst(of_flow(REPLICATED_PARTITIONS), "quality"),
                    legend="{{quality}}",
                    instant=True,
                ),
            ),
            steps=NEUTRAL,
            decimals=0,
            leads=Identity.PIPELINE,
            height=5,
        ),
    )


def _labels(metric: Metric) -> tuple[str, ...]:
    return ("flow", "topic", "config") if metric is TOPIC_CONFIG_DRIFT else ("flow", "topic")
