"""Offsets of different logs never meet in a subtraction: a property over interleaved readings.

The model knows which log each offset is of. A topic that is deleted, re-created or truncated gets
a new log, also between two requests of a round, while topics, ids, start offsets and MirrorMaker
2's records are read at their own times. A new log ends below the last end that was read of the
old one until its own end is read: nothing but the topic's id shows it otherwise (docs/limits.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from flow_observations import Scene, flow_config
from hypothesis import example, given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.readers.flow_reader import SideReader
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.partition_offsets import OffsetReading

ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("us.orders", 0)
STEADY, STEADY_COPY = TopicPartition("steady", 0), TopicPartition("us.steady", 0)
BACKLOG = 250
Step = tuple[str, int]


@dataclass
class Log:
    """One partition; `number` counts its logs."""

    number: int = 1
    exists: bool = True
    start: int = 0
    first_start: int = 0
    end: int = 0
    held_from: int | None = None
    """Where an open transaction starts."""
    read_end: int = 0
    """The newest end that was read, of this log or an earlier one."""
    read_number: int = 1

    @property
    def stable(self) -> int:
        return self.end if self.held_from is None else max(self.start, self.held_from)

    def append(self, count: int) -> None:
        if self.exists:
            limit = self.end + count if self.number == self.read_number else self.read_end - 1
            self.end = max(self.end, min(self.end + count, limit))

    def replace(self, end: int) -> None:
        self.number += 1
        self.exists = True
        self.start = self.first_start = min(self.start, end)
        self.end, self.held_from = end, None


@dataclass
class World:
    """Both clusters and MirrorMaker 2; events happen before the requests of a round."""

    source: Log = field(default_factory=lambda: Log(start=4900, end=5000, read_end=5000))
    copy: Log = field(default_factory=lambda: Log(end=100, read_end=100))
    position: int = 5000
    of_log: int = 1
    committed: int = 4999
    sync: NewestSync = field(default_factory=lambda: NewestSync(4999, 99, 1.0))
    events: list[Step] = field(default_factory=list)
    served: dict[tuple[str, TopicPartition], tuple[int, int, range]] = field(default_factory=dict)
    """Number of the log, offset that was read last, and all starts of that log, by kind."""

    def apply(self, name: str, count: int) -> None:
        log = self.copy if name.endswith("copy") else self.source
        match name.removesuffix(" copy"):
            case "append":
                self.source.append(count)
            case "delete":
                log.exists = False
            case "create":
                log.replace(0)
            case "truncate" if log.exists:
                log.replace(max(0, min(log.end, log.read_end) - count))
            case "trim" if log.exists:
                log.start = min(log.end, log.start + count)
            case "open":
                self.source.held_from = self.source.end
            case "close":
                self.source.held_from = None
            case "replicate":
                self.replicate(count)
            case "commit":
                self.committed = self.position - 1

    def replicate(self, count: int) -> None:
        source, copy = self.source, self.copy
        if not (source.exists and copy.exists):
            return
        if self.of_log != source.number or not source.start <= self.position <= source.end:
            is_beyond = not source.start <= self.position <= source.end
            self.of_log, self.position = source.number, source.start if is_beyond else self.position
        for _ in range(min(count, source.stable - self.position)):
            before, copy_before = self.position, copy.end
            copy.append(1)
            if copy.end == copy_before:
                return  # the model's limit
            if before - self.sync.upstream != copy_before - self.sync.downstream:
                self.sync = NewestSync(before, copy_before, self.sync.at + 1)
            self.position += 1

    def log(self, partition: TopicPartition) -> Log:
        others = {
            STEADY: Log(end=1000, read_end=1000),
            STEADY_COPY: Log(end=1000 - BACKLOG, read_end=1000),
        }
        return {ORDERS: self.source, COPY: self.copy, **others}[partition]

    def ask(self, kind: str, partitions: Sequence[TopicPartition]) -> OffsetReading:
        if self.events:
            self.apply(*self.events.pop(0))
        offsets, errors = {}, {}
        for partition in partitions:
            log = self.log(partition)
            if not log.exists:
                errors[partition] = ErrorKind.UNKNOWN_TOPIC
                continue
            offsets[partition] = {"start": log.start, "end": log.end, "stable": log.stable}[kind]
            starts = range(log.first_start, log.start + 1)
            self.served[kind, partition] = log.number, offsets[partition], starts
            if kind == "end":
                log.read_number, log.read_end = log.number, log.end
        return OffsetReading(offsets, errors, 0.0, 0.0)


class Side:
    """The client of one cluster."""

    def __init__(self, world: World, alias: str) -> None:
        self.world, self.alias = world, alias

    def end_offsets(
        self, partitions: Sequence[TopicPartition], isolation: str = "", timeout: float = 0.0
    ) -> OffsetReading:
        return self.world.ask("stable" if isolation == "read_committed" else "end", partitions)

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = 0.0
    ) -> OffsetReading:
        return self.world.ask("start", partitions)


class Exporter:
    """The readers of offsets, and the flow's state."""

    def __init__(self, world: World, isolation: str) -> None:
        self.world, self.at = world, 100.0
        health, committed = CollectionHealth(), isolation == "read_committed"
        self.sides = [
            SideReader(
                Side(world, alias),
                health,
                starts_every=30.0,
                stable_ends=committed and alias == "us",
                clock=lambda: self.at,
                timer=lambda: self.at,
            )
            for alias in ("us", "eu")
        ]
        self.tracker = FlowTracker(
            flow_config(isolation=isolation),
            carrier=CanaryCarrier.OFF,
            shared_target=False,
            started_at=self.at,
        )
        self.scene = Scene()
        self.scene.add("orders")
        self.scene.add("steady").sync = NewestSync(0, 0, 1.0)
        self.list()
        self.identify()

    def list(self) -> None:
        self.listed = {
            p.topic: 1 for p in (ORDERS, STEADY, COPY, STEADY_COPY) if self.world.log(p).exists
        }
        ids = getattr(self, "ids", {})
        self.ids = {topic: found for topic, found in ids.items() if topic in self.listed}

    def identify(self) -> None:
        found = {p: self.world.log(p) for p in (ORDERS, STEADY, COPY, STEADY_COPY)}
        self.ids = {p.topic: f"id-{log.number}" for p, log in found.items() if log.exists}

    def poll(self, seconds: int) -> FlowReport:
        self.at += seconds
        world = self.world
        log = self.scene.logs[ORDERS]
        log.committed, log.sync = world.committed, world.sync
        self.scene.roles = {
            name: role for name, role in self.all_roles.items() if name in self.listed
        }
        looked = self.scene.look(self.at)
        source_topics = {name: n for name, n in self.listed.items() if not name.startswith("us.")}
        target_topics = {name: n for name, n in self.listed.items() if name.startswith("us.")}
        target, source = self.sides[1], self.sides[0]
        target.read(looked.plan.target_partitions(target_topics))
        source.read(looked.plan.source_partitions(source_topics))
        return self.tracker.update(
            replace(
                looked,
                source=replace(looked.source, topics=source_topics, topic_ids=self.ids),
                target=replace(looked.target, topics=target_topics, topic_ids=self.ids),
                source_offsets=source.newest,
                target_offsets=target.newest,
                source_readable=source.readable,
                target_readable=target.readable,
            )
        )

    @property
    def all_roles(self) -> dict[str, Any]:
        found: dict[str, Any] = getattr(self, "_roles", None) or dict(self.scene.roles)
        self._roles = found
        return found


def check(report: FlowReport, exporter: Exporter) -> None:
    world = exporter.world
    read = exporter.sides[0].newest
    assert read is not None
    for side, partition in zip(exporter.sides, (ORDERS, COPY), strict=True):
        newest = side.newest
        assert newest is not None
        if partition in newest.starts:
            end, start = world.served["end", partition], world.served["start", partition]
            assert (newest.ends[partition], newest.starts[partition]) == (end[1], start[1])
            # A start of another log is as good as an old one of the same log if that had it, too.
            assert end[0] == start[0] or start[1] in end[2]
    quantities = [report.lag_records, report.lag_seconds, report.catch_up_seconds]
    if report.recovery_point is not None:
        quantities += [report.recovery_point.records, report.recovery_point.seconds]
    known = []
    for topic in report.topics:
        (state,) = topic.partitions
        quantities += [state.lag_records, state.lag_seconds, state.open_transaction_records]
        if state.lag_records is not None:
            assert None not in (state.source_start, state.source_end, state.next_offset)
            assert state.lag_records <= (state.source_end or 0) - (state.source_start or 0)
            known.append(state.lag_records)
    assert [each for each in quantities if each is not None and each < 0] == []
    assert BACKLOG in known
    assert report.lag_records == sum(known)


COUNTS = st.integers(1, 120)
NAMES = (
    ["append", "delete", "create", "truncate", "trim", "open", "close", "replicate", "commit"],
    [f"{name} copy" for name in ("delete", "create", "truncate", "trim")],
)
EVENTS = st.tuples(st.sampled_from([*NAMES[0], *NAMES[1]]), COUNTS)
READINGS = st.tuples(st.sampled_from(["poll", "list", "identify"]), st.integers(1, 20))
STEPS = st.lists(st.tuples(st.lists(EVENTS, max_size=4), READINGS), max_size=25)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@example(steps=[([("append", 1), ("append", 1), ("delete", 1)], ("poll", 1))])
@example(steps=[([], ("poll", 5)), ([("delete", 1), ("create", 1)], ("poll", 5))])
@example(
    steps=[
        ([], ("poll", 5)),
        ([("delete", 1)], ("list", 5)),
        ([], ("poll", 5)),
        ([("create", 1), ("append", 100)], ("list", 5)),
        ([], ("poll", 5)),
    ]
)
@example(
    steps=[
        ([("create", 1)], ("poll", 1)),
        ([("create", 1)], ("poll", 1)),
        ([("append", 1)], ("poll", 1)),
    ]
)
@example(
    steps=[
        ([("create", 1)], ("poll", 1)),
        ([("append", 1), ("append", 1), ("create", 1)], ("poll", 1)),
    ]
)
@given(steps=STEPS)
def test_offsets_of_different_logs_are_not_subtracted_and_nothing_is_negative(
    isolation: str, steps: list[tuple[list[Step], Step]]
) -> None:
    world = World()
    exporter = Exporter(world, isolation)
    check(exporter.poll(5), exporter)
    for events, (reading, seconds) in steps:
        world.events += events
        if reading == "poll":
            check(exporter.poll(seconds), exporter)
        else:
            while world.events:
                world.apply(*world.events.pop(0))
            getattr(exporter, reading)()
