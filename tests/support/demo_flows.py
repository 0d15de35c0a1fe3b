"""Flows of the demo as the exporter reports them."""

from dataclasses import replace
from typing import Any

from mm2slo_cli.demo_figures import (
    FlowFigures,
    LatencyPercentiles,
    RecentActivity,
    RecentThroughput,
)
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.group_readiness import Blocked, BlockReason, GroupReadiness
from mm2slo_core.indicators.replication_lag import Headroom
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow
from mm2slo_exporter.state.flow_report import (
    FlowInfo,
    FlowReport,
    GroupState,
    PartitionState,
    TopicState,
)
from mm2slo_exporter.state.group_lag import UNKNOWN_LAG, LagSum

US_EU = Flow("us", "eu")


def topic(
    name: str = "orders",
    end: int = 10,
    lag: int | None = 0,
    headrooms: tuple[Headroom | None, ...] = (None,),
) -> TopicState:
    """A topic with a partition for each of *headrooms*."""
    copied = end - (lag or 0)
    partitions = tuple(
        PartitionState(
            number, 0, end, 0, copied, next_offset=copied, lag_records=lag, headroom=headroom
        )
        for number, headroom in enumerate(headrooms)
    )
    return TopicState(TopicPair(name, f"us.{name}", TopicRole.DATA), partitions, len(partitions))


def group(
    name: str,
    lower: int | None = 0,
    upper: int | None = 0,
    *blocked: BlockReason,
    unreplicated: LagSum = UNKNOWN_LAG,
) -> GroupState:
    """A group that is ready unless it is *blocked*."""
    readiness = GroupReadiness(
        group=name,
        ready=not blocked,
        blocked=tuple(map(Blocked, blocked)),
        checkpoint_lag=0,
        redelivery_lower=lower,
        redelivery_upper=upper,
        partitions=(),
    )
    return GroupState(name, readiness, None, {}, unreplicated=unreplicated)


RUNNING = FlowReport(
    flow=US_EU,
    info=FlowInfo("default", ".", "mirrormaker2", "heartbeats"),
    at=0.0,
    state=FlowStateName.RUNNING,
    state_reason="position_advances",
    ready=True,
    waiting_for=(),
    source_readable=True,
    target_readable=True,
    topics=(topic(),),
    groups=(group("a", 0, 3), group("b", 0, 3)),
    lag_records=0,
    lag_seconds=0.0,
)
COMPLETE = FlowFigures(
    RUNNING,
    RecentActivity(
        RecentThroughput(5.0, 4.0), LatencyPercentiles(0.01, 0.02), LatencyPercentiles(0.01, 0.02)
    ),
)


def changed(figures: FlowFigures, **fields: Any) -> FlowFigures:
    """*figures* with another report."""
    return replace(figures, report=replace(figures.report, **fields))
