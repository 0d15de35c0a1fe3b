"""A flow for tests of live advice: 12 partitions on 5 tasks, and one partition has the traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mm2slo_core.mm2_config.live_advice import FlowFacts, PartitionFacts
from mm2slo_core.topology import Flow, TopicPartition

ORDERS = [TopicPartition("orders", number) for number in range(12)]
FACTS = FlowFacts(
    flow=Flow("us", "eu"),
    seconds=60.0,
    partitions={
        ORDERS[0]: PartitionFacts(replicated=48_000, produced=72_000, lag=264_000),
        **dict.fromkeys(ORDERS[1:], PartitionFacts(replicated=6_000, produced=6_000, lag=0)),
    },
    first_lag=240_000,
    lag=264_000,
    tasks={task: ORDERS[task::5] for task in range(5)},
    settings={"tasks.max": "5"},
    record_size=1_000.0,
    size_source="--record-size",
    round_trips=(0.08, 0.006),
)


def changed(**changes: Any) -> FlowFacts:
    """The flow with some facts changed."""
    return replace(FACTS, **changes)


def evenly(replicated: int | None, produced: int | None, lag: int | None) -> dict[Any, Any]:
    """The same facts of all partitions."""
    return dict.fromkeys(ORDERS, PartitionFacts(replicated, produced, lag))
