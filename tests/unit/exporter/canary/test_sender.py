"""Canaries go out when they are due, carry what a restart needs, and tell how they fared."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from canary_specs import spec

from mm2slo_core.canary_record import CanaryRecord, is_canary_heartbeat
from mm2slo_core.records import Heartbeat
from mm2slo_exporter.canary.events import Produced, ProduceFailed, Scheduled, Trouble, Working
from mm2slo_exporter.canary.hints import Hint, Hints
from mm2slo_exporter.canary.outbox import Outbox
from mm2slo_exporter.canary.sender import Sender
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.metadata import TopicIdentity
from mm2slo_kafka.producer import Delivered, DeliveryResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

START = 1_700_000_000.0
TIMEOUT = KafkaOperationError(
    ErrorKind.TIMEOUT, cluster="us", operation="writing", detail="no answer"
)


class World:
    """The clock, the source's topics and its producer. Time passes only in `poll`."""

    def __init__(self, sends: int, *, partitions: int = 2) -> None:
        self.now = START
        self.stopping = threading.Event()
        self.left = sends
        self.partitions = partitions
        self.refusals: list[KafkaOperationError] = []
        self.there: set[str] = set()
        self.hidden_looks = 0
        self.created: list[tuple[str, int, Mapping[str, str]]] = []
        self.sent: list[dict[str, Any]] = []
        self.farewells: list[dict[str, Any]] = []
        self.results: list[DeliveryResult | None] = []
        self.stall = 0.0
        self.closed = False
        self.before_stop: Callable[[], object] = lambda: None

    def clock(self) -> float:
        return self.now

    def create_topic(
        self, topic: str, *, partitions: int, config: Mapping[str, str] | None = None
    ) -> bool:
        if self.refusals:
            self.now += 2.0
            raise self.refusals.pop(0)
        self.created.append((topic, partitions, config or {}))
        return True

    def identify(
        self, topics: Sequence[str]
    ) -> tuple[Mapping[str, TopicIdentity], Mapping[str, ErrorKind]]:
        there = {created[0] for created in self.created} | self.there
        if self.created and self.hidden_looks:
            self.hidden_looks -= 1
            return {}, dict.fromkeys(topics, ErrorKind.UNKNOWN_TOPIC)
        return {topic: TopicIdentity("id", self.partitions) for topic in there & {*topics}}, {}

    def send(
        self, topic: str, *, on_delivery: Callable[[DeliveryResult], None], **record: Any
    ) -> None:
        if self.stopping.is_set():
            self.farewells.append({"topic": topic, "at": self.now, **record})
            on_delivery(Delivered(topic, record["partition"], 99, 0))
            return
        self.sent.append({"topic": topic, "at": self.now, **record})
        result = self.results.pop(0) if self.results else None
        on_delivery(result or Delivered(topic, record["partition"], 40 + len(self.sent), 0))
        self.now += self.stall
        self.stall = 0.0
        self.left -= 1
        if self.left == 0:
            self.before_stop()
            self.stopping.set()

    def poll(self, timeout: float) -> None:
        self.now += timeout

    def close(self) -> None:
        self.closed = True


def run(world: World, hints: Hints | None = None, **changes: Any) -> list[Any]:
    outbox, restored = Outbox(), threading.Event()
    restored.set()
    sender = Sender(
        spec(**changes), world, outbox, hints or Hints(), producer=lambda: world, clock=world.clock
    )
    sender.run(restored, world.stopping)
    return outbox.take()


FIRST = int(START * 1000)


def test_canaries_are_sent_each_when_it_is_due_round_the_partitions() -> None:
    world = World(4)
    events = run(world, interval_seconds=0.5)
    assert [record["at"] for record in world.sent] == pytest.approx(
        [START, START + 0.5, START + 1.0, START + 1.5]
    )
    assert [record["partition"] for record in world.sent] == [FIRST % 2, (FIRST + 1) % 2] * 2
    scheduled = [event for event in events if isinstance(event, Scheduled)]
    assert [event.sequence for event in scheduled] == [FIRST + number for number in range(4)]
    assert [event.at for event in scheduled] == pytest.approx(
        [START, START + 0.5, START + 1.0, START + 1.5]
    )
    assert world.closed


def test_a_canary_counts_before_it_is_sent_and_is_told_when_acknowledged() -> None:
    world = World(1)
    assert run(world) == [
        Scheduled("us->eu", FIRST, FIRST % 2, START),
        Produced("us->eu", FIRST, FIRST % 2, 41, START),
        Working("us->eu", "us", "canary_send", START),
    ]


def test_success_is_reported_once_a_second_only() -> None:
    events = run(World(11), interval_seconds=0.25)
    assert sum(isinstance(event, Working) for event in events) == 3
    assert sum(isinstance(event, Produced) for event in events) == 11


def test_a_produce_that_fails_is_told_with_its_reason() -> None:
    world = World(2)
    world.results = [TIMEOUT]
    events = run(world)
    assert events[1:3] == [
        ProduceFailed("us->eu", FIRST, "timeout", START),
        Trouble("us->eu", "us", "canary_send", "timeout", str(TIMEOUT), START),
    ]
    assert isinstance(events[4], Produced)


def test_what_fell_due_in_a_pause_of_the_machine_is_not_caught_up() -> None:
    world = World(4)
    world.stall = 10.0
    run(world)
    times = [record["at"] - START for record in world.sent]
    assert times == pytest.approx([0.0, 10.0, 10.0, 11.0])


def test_canaries_carry_what_was_settled() -> None:
    world = World(1)
    run(world, {"us->eu": Hint(floor=7, newest_arrived=9), "eu->us": Hint(1, 1)})
    (record,) = world.sent
    assert CanaryRecord.from_headers(record["headers"]) == CanaryRecord(
        instance="here",
        flow="us->eu",
        sequence=FIRST,
        sent_ms=FIRST,
        partition=FIRST % 2,
        floor=7,
        newest_arrived=9,
    )
    assert record["timestamp_ms"] == FIRST
    assert (record["key"], record["value"]) == (b"here/us->eu/%d" % (FIRST % 2), b"%d" % FIRST)


def test_a_farewell_tells_the_next_process_what_was_counted_and_is_not_counted_itself() -> None:
    world, hints = World(2), {"us->eu": Hint(floor=FIRST, newest_arrived=FIRST - 1)}
    world.before_stop = lambda: hints.update({"us->eu": Hint(FIRST + 2, FIRST + 1)})
    events = run(world, hints)
    (record,) = world.farewells
    farewell = CanaryRecord.from_headers(record["headers"])
    assert farewell is not None
    assert (farewell.sequence, farewell.partition) == (FIRST + 2, FIRST % 2)
    assert (farewell.floor, farewell.newest_arrived) == (FIRST + 2, FIRST + 1)
    told = {event.sequence for event in events if isinstance(event, Scheduled | Produced)}
    assert told == {FIRST, FIRST + 1}


def test_on_the_heartbeats_carrier_a_canary_is_a_valid_heartbeat_of_its_own() -> None:
    world = World(1, partitions=1)
    run(world, carrier="heartbeats", source_topic="heartbeats")
    (record,) = world.sent
    beat = Heartbeat.decode(record["key"], record["value"])
    assert isinstance(beat, Heartbeat)
    assert is_canary_heartbeat(beat)
    assert (beat.target_alias, beat.timestamp_ms) == ("us", FIRST)
    assert world.created == [("heartbeats", 1, {"cleanup.policy": "compact"})]


def test_the_own_topic_is_made_with_partitions_for_several_tasks() -> None:
    world = World(1)
    run(world)
    assert world.created == [("mm2slo.canary", 4, {"retention.ms": "86400000"})]


def test_a_topic_that_is_there_is_not_made_so_that_nobody_needs_to_be_allowed_to() -> None:
    world = World(1)
    world.there = {"mm2slo.canary"}
    run(world)
    assert world.created == []
    assert len(world.sent) == 1


def test_a_topic_that_shows_a_moment_after_its_creation_costs_no_canary() -> None:
    world = World(1)
    world.hidden_looks = 2
    events = run(world)
    assert [type(event) for event in events] == [Scheduled, Produced, Working]
    assert len(world.created) == 1


def test_without_a_topic_canaries_fall_due_and_fail() -> None:
    world = World(1)
    world.refusals = [TIMEOUT]
    clock = world.clock

    def ticking() -> float:
        world.now += 1.0  # time passes while it waits
        return clock()

    outbox, restored = Outbox(), threading.Event()
    restored.set()
    sender = Sender(
        spec(interval_seconds=0.001), world, outbox, Hints(), producer=lambda: world, clock=ticking
    )
    sender.run(restored, world.stopping)
    events = outbox.take()
    assert isinstance(events[0], Trouble)
    failed = [event for event in events if isinstance(event, ProduceFailed)]
    assert {event.reason for event in failed} == {"no_topic"}
    assert 1 <= len(failed) <= 5
    scheduled = [event.sequence for event in events if isinstance(event, Scheduled)]
    assert scheduled == list(range(scheduled[0], scheduled[0] + len(failed) + 1))
    assert len(world.sent) == 1


def test_where_writing_is_off_nothing_is_sent_or_made() -> None:
    world = World(1)
    assert run(world, carrier="off") == []
    assert (world.created, world.sent) == ([], [])


def test_a_spec_does_not_show_its_secrets() -> None:
    assert "s3cret" not in repr(spec())
