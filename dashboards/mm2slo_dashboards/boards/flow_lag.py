"""How far a flow is behind, whether it moves, and whether retention could take what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.boards import Board as Identity
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
from mm2slo_core.retention import HEADROOM_AHEAD, HEADROOM_LEAST
from mm2slo_dashboards.boards.common import NO_EXPORTER
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Kind, Panel, Query, Steps, Unit
from mm2slo_dashboards.selecting import (
    IN_FLOW,
    IN_TOPIC,
    bottom,
    growth,
    least,
    of_flow,
    rate,
    top,
    total,
    where,
    worst,
)
from mm2slo_dashboards.states import NONE_IS_GOOD, up_to

if TYPE_CHECKING:
    from mm2slo_core.promql import Vector
    from mm2slo_dashboards.limits import Limits

_WHERE = ("topic", "partition")
_NAMED = "{{topic}} {{partition}}"
_HEADROOM: Final = Steps(
    Colour.BAD, ((HEADROOM_LEAST, Colour.WARNING), (HEADROOM_AHEAD, Colour.GOOD))
)
"""Bounds of `MM2RetentionHeadroomLow`."""


def behind(limits: Limits) -> tuple[Panel, ...]:
    """Lag of the flow and of its worst partitions, throughput, standstill."""
    return (
        _course(FLOW_LAG_SECONDS, "How old is what waits?", Unit.SECONDS, up_to(limits.fresh)),
        _course(FLOW_LAG_RECORDS, "How many records wait?", Unit.COUNT, None),
        Panel(
            title="When will it have caught up?",
            description="Time until the lag is gone at the present net rate; 0 without lag.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data="The lag does not shrink: the flow does not gain on what waits.",
            queries=(Query(vector=worst(of_flow(CATCHUP_ETA_SECONDS), "flow"), legend="{{flow}}"),),
            least=0.0,
            leads=Identity.FLEET,
            width=8,
        ),
        _worst_ten(
            REPLICATION_LAG_SECONDS,
            "Which topics or partitions are oldest?",
            Unit.SECONDS,
            up_to(limits.fresh),
        ),
        _worst_ten(REPLICATION_LAG_RECORDS, "Where do most records wait?", Unit.COUNT, steps=None),
        Panel(
            title="Does it keep up?",
            description="Records a second that arrive on the source, and that are replicated. "
            "They should be the same line.",
            kind=Kind.SERIES,
            unit=Unit.RATE,
            no_data=NO_EXPORTER,
            queries=(
                Query(vector=_throughput(SOURCE_RECORDS_TOTAL), legend="written on the source"),
                Query(vector=_throughput(REPLICATED_RECORDS_TOTAL), legend="replicated"),
            ),
            colours={
                "written on the source": Colour.NEUTRAL,
                "replicated": Colour.GOOD,
            },
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2PartitionStalled",
            width=8,
        ),
        Panel(
            title="Which topics stand still?",
            description="Partitions with records waiting whose position does not advance, by "
            "topic. Good is none, also while the flow as a whole moves.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="No partition stands still.",
            queries=(
                Query(
                    vector=top(
                        10,
                        where(worst(of_flow(STALLED_PARTITIONS, IN_TOPIC), "topic"), "> 0"),
                    ),
                    legend="{{topic}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2PartitionStalled",
            fills="a stopped MirrorMaker 2",
            width=8,
        ),
        Panel(
            title="Does a transaction hold records back?",
            description="Records between the last stable offset and the end, by topic. Copied "
            "only when the transaction ends, where the flow reads committed records.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="No transaction is open.",
            queries=(
                Query(
                    vector=top(
                        10,
                        where(
                            total(
                                worst(of_flow(OPEN_TRANSACTION_RECORDS, IN_TOPIC), *_WHERE), "topic"
                            ),
                            "> 0",
                        ),
                    ),
                    legend="{{topic}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2TransactionHangs",
            fills="an open transaction",
            width=8,
        ),
    )


def loss() -> tuple[Panel, ...]:
    """Retention headroom and certain loss."""
    return (
        Panel(
            title="When would retention reach what waits?",
            description="Time until retention on the source removes what is not replicated yet, "
            "of the ten topics that are closest, by the limit that does it.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data="No limit is near: retention is unlimited, or nothing was written yet.",
            queries=(
                Query(
                    vector=bottom(
                        10,
                        least(of_flow(RETENTION_HEADROOM_SECONDS, IN_TOPIC), *_WHERE, "limit"),
                    ),
                    legend=f"{_NAMED} by {{{{limit}}}}",
                ),
            ),
            steps=_HEADROOM,
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2RetentionHeadroomLow",
            width=8,
        ),
        Panel(
            title="How many records are between?",
            description="Records between the source's log start and the replicated position, of "
            "the ten topics that are closest. At 0 the next removal is a loss; below 0 records "
            "are lost.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=bottom(
                        10, least(of_flow(RETENTION_HEADROOM_RECORDS, IN_TOPIC), *_WHERE)
                    ),
                    legend=_NAMED,
                ),
            ),
            leads=Identity.FLEET,
            alert="MM2RetentionHeadroomLow",
            width=8,
        ),
        Panel(
            title="How many records are lost for certain?",
            description="Records that retention removed before they were replicated, in the time "
            "that is shown. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=total(
                        growth(
                            RETENTION_LOST_RECORDS_TOTAL, IN_FLOW, IN_TOPIC, by=("flow", "topic")
                        ),
                        "flow",
                    ),
                    legend="{{flow}}",
                    instant=True,
                ),
            ),
            steps=NONE_IS_GOOD,
            decimals=0,
            leads=Identity.AUDIT,
            alert="MM2RecordsLost",
            width=8,
        ),
    )


def _course(metric: Metric, title: str, unit: Unit, steps: Steps | None) -> Panel:
    return Panel(
        title=title,
        description=metric.help + " It grows while the flow stands still.",
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER,
        queries=(Query(vector=worst(of_flow(metric), "flow"), legend="{{flow}}"),),
        steps=steps,
        least=0.0,
        leads=Identity.FLEET,
        alert="MM2PartitionStalled",
        width=8,
    )


def _worst_ten(metric: Metric, title: str, unit: Unit, steps: Steps | None) -> Panel:
    return Panel(
        title=title,
        description=f"{metric.help} The ten worst, by topic and partition, as fine as the "
        "exporter's granularity.",
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER,
        queries=(Query(vector=top(10, worst(of_flow(metric, IN_TOPIC), *_WHERE)), legend=_NAMED),),
        steps=steps,
        least=0.0,
        leads=Identity.FLEET,
        alert="MM2PartitionStalled",
        width=8,
    )


def _throughput(metric: Metric) -> Vector:
    return rate(metric, IN_FLOW, IN_TOPIC, by=("flow",), within="topic")
