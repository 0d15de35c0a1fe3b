"""One round reads internal topics, then target end offsets, then source end offsets."""

import threading
from collections.abc import Sequence
from typing import cast

import pytest

from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import RestoreFinished
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.readers.flow_reader import FlowReader, SideReader
from mm2slo_exporter.supervised_thread import Loop

PLAN = FlowPlan((TopicPair("orders", "us.orders", TopicRole.DATA),))


class Side:
    """A side reader that records requests."""

    def __init__(self, name: str, log: list[object]) -> None:
        self.name = name
        self.log = log
        self.readable = True
        self.newest: OffsetsRead | None = None

    def read(self, partitions: Sequence[TopicPartition]) -> None:
        self.log.append((self.name, tuple(partitions)))
        self.newest = OffsetsRead(requested_at=float(len(self.log)))


class Sources:
    """Results of the other readers."""

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

    def canary_events(self) -> tuple[RestoreFinished, ...]:
        self.log.append("events")
        return (RestoreFinished("us->eu", 5.0),)


class Flow:
    def __init__(self) -> None:
        self.log: list[object] = []
        self.failures: list[Loop] = []
        self.source, self.target = Side("source", self.log), Side("target", self.log)
        self.sources = Sources(self.log)
        self.delivered: list[Observation] = []
        self.enough = threading.Event()
        self.behind: set[int] = set()
        """The deliveries that replace a round that was not evaluated."""
        self.reader = FlowReader(
            "us->eu",
            self.sources,  # type: ignore[arg-type]  # it has no probes
            lambda _source, _internals: PLAN,
            self.deliver,
            source=cast("SideReader", self.source),
            target=cast("SideReader", self.target),
            every=0.001,
            on_failure=self.failures.append,
            clock=lambda: 77.0,
        )

    def deliver(self, seen: Observation) -> bool:
        self.delivered.append(seen)
        if len(self.delivered) == 3:
            self.enough.set()
        return len(self.delivered) in self.behind


def test_round_reads_internal_topics_then_target_then_source() -> None:
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
    assert seen.canary_events == (RestoreFinished("us->eu", 5.0),)


def test_side_with_all_topics_unauthorized_is_unreadable() -> None:
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


def test_side_with_offsets_and_topics_is_readable() -> None:
    flow = Flow()
    flow.source.readable = False
    flow.sources.target = ClusterView()
    seen = flow.reader.read()
    assert (seen.source_readable, seen.target_readable) == (False, False)
    flow.source.readable = True
    flow.sources.target = ClusterView(topics_read_at=2.0)
    seen = flow.reader.read()
    assert (seen.source_readable, seen.target_readable) == (True, True)


def test_flow_reader_waits_twice_as_long_after_skipped_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = Flow()
    flow.behind = {2, 3}
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(round(seconds, -3))
        if len(waits) == 4:
            flow.reader._stopping.set()

    monkeypatch.setattr(flow.reader, "_every", 10_000.0)
    monkeypatch.setattr(flow.reader._stopping, "wait", wait)
    monkeypatch.setattr(flow.reader._wake, "wait", wait)
    flow.reader._run()
    assert waits == [10_000, 20_000, 20_000, 10_000]


def test_flow_reader_delivers_rounds_until_stopped() -> None:
    flow = Flow()
    flow.reader.start()
    assert flow.enough.wait(30)
    flow.reader.stop()
    count = len(flow.delivered)
    assert flow.log.count("internals") == count


def test_flow_reader_reads_next_round_at_once_when_there_are_other_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = Flow()
    rounds: list[Observation] = []

    def deliver(seen: Observation) -> bool:
        rounds.append(seen)
        if len(rounds) == 3:
            flow.reader._stopping.set()
        flow.reader.read_soon()
        return False

    monkeypatch.setattr(flow.reader, "_every", 10_000.0)
    monkeypatch.setattr(flow.reader, "_deliver", deliver)
    flow.reader._run()
    assert len(rounds) == 3
