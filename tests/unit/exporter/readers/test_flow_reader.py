"""One round: internal topics, then target ends, then source ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from mm2slo_core.selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.events import Restored
from mm2slo_exporter.observation import ClusterView, InternalsView, OffsetsRead
from mm2slo_exporter.plan import FlowPlan
from mm2slo_exporter.readers.flow import FlowReader, Sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.readers.offsets import SideReader

PLAN = FlowPlan((TopicPair("orders", "us.orders", TopicRole.DATA),))


class Side:
    """A side reader that notes what it was asked for."""

    def __init__(self, name: str, log: list[object]) -> None:
        self.name = name
        self.log = log
        self.readable = True
        self.newest: OffsetsRead | None = None

    def read(self, partitions: Sequence[TopicPartition]) -> None:
        self.log.append((self.name, tuple(partitions)))
        self.newest = OffsetsRead(requested_at=float(len(self.log)))


class Sources:
    """What the other readers know."""

    def __init__(self, log: list[object]) -> None:
        self.log = log
        self.source = ClusterView(topics={"orders": 2}, topics_read_at=1.0)
        self.target = ClusterView(topics={"us.orders": 1}, topics_read_at=1.0)

    def clusters(self) -> tuple[ClusterView, ClusterView]:
        return self.source, self.target

    def internals(self) -> InternalsView:
        self.log.append("internals")
        return InternalsView(waiting_for=("x",))

    def probes(self) -> dict[TopicPartition, object]:
        return {}

    def canary_events(self) -> tuple[Restored, ...]:
        self.log.append("events")
        return (Restored("us->eu", 5.0),)


class Flow:
    def __init__(self) -> None:
        self.log: list[object] = []
        self.source, self.target = Side("source", self.log), Side("target", self.log)
        self.sources = Sources(self.log)
        self.delivered: list[Observation] = []
        self.enough = threading.Event()
        self.reader = FlowReader(
            "us->eu",
            Sides(cast("SideReader", self.source), cast("SideReader", self.target)),
            self.sources,  # type: ignore[arg-type]  # its probes are none
            lambda _source: PLAN,
            self.deliver,
            every=0.001,
            before=lambda: self.log.append("before"),
            clock=lambda: 77.0,
        )

    def deliver(self, seen: Observation) -> None:
        self.delivered.append(seen)
        if len(self.delivered) == 3:
            self.enough.set()


def test_the_target_is_read_after_the_internal_topics_and_before_the_source() -> None:
    flow = Flow()
    seen = flow.reader.read()
    assert flow.log == [
        "internals",
        ("target", (TopicPartition("us.orders", 0),)),
        ("source", (TopicPartition("orders", 0), TopicPartition("orders", 1))),
        "events",
    ]
    assert seen.at == 77.0
    assert seen.plan is PLAN
    assert (seen.source, seen.target) == flow.sources.clusters()
    assert seen.internals.waiting_for == ("x",)
    assert seen.source_offsets is flow.source.newest
    assert seen.target_offsets is flow.target.newest
    assert seen.canary_events == (Restored("us->eu", 5.0),)


def test_a_side_whose_topics_are_all_hidden_from_us_is_not_readable() -> None:
    flow = Flow()
    counts = {"us.orders": 1, "other": 1}
    for hidden, readable in (
        ({"us.orders"}, False),
        ({"us.orders", "other"}, False),
        ({"other"}, True),
        (set(), True),
    ):
        flow.sources.target = ClusterView(counts, hidden=frozenset(hidden), topics_read_at=1.0)
        assert flow.reader.read().target_readable is readable, hidden


def test_a_side_is_readable_when_its_offsets_answer_and_its_topics_are_known() -> None:
    flow = Flow()
    flow.source.readable = False
    flow.sources.target = ClusterView()
    seen = flow.reader.read()
    assert (seen.source_readable, seen.target_readable) == (False, False)
    flow.source.readable = True
    flow.sources.target = ClusterView(topics_read_at=2.0)
    seen = flow.reader.read()
    assert (seen.source_readable, seen.target_readable) == (True, True)


def test_rounds_follow_each_other_after_what_comes_first_until_it_is_stopped() -> None:
    flow = Flow()
    flow.reader.start()
    assert flow.enough.wait(30)
    flow.reader.stop()
    count = len(flow.delivered)
    assert flow.log[0] == "before"
    assert flow.log.count("before") == 1
    assert flow.log.count("internals") == count
