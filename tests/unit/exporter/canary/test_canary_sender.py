"""Canaries are sent when due, carry the ledger state, and report their delivery."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, cast

import pytest
from canary_specs import spec

from mm2slo_core.indicators.canary_rules import CanaryRecord, is_canary_heartbeat
from mm2slo_core.records.mirror_records import Heartbeat
from mm2slo_exporter.canary import canary_sender
from mm2slo_exporter.canary.canary_messages import (
    EventBuffer,
    InstanceNamed,
    LedgerState,
    LedgerStates,
    Produced,
    ProduceFailed,
    Scheduled,
    SourceTopicRecreated,
    StageFailed,
    StageSucceeded,
)
from mm2slo_exporter.canary.canary_sender import CanarySender, CarrierTopic, SendLoop
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import Delivered, DeliveryResult, RecordProducer

START = 1_700_000_000.0
TIMEOUT = KafkaOperationError(
    ErrorKind.TIMEOUT, cluster="us", operation="writing", detail="no answer"
)


class World:
    """The clock, the source's topics and its producer. Time advances only in `poll`."""

    def __init__(self, sends: int, *, partitions: int = 2) -> None:
        self.now = START
        self.clock_step = 0.0
        self.stopping = threading.Event()
        self.left = sends
        self.partitions = partitions
        self.refusals: list[KafkaOperationError] = []
        self.there: set[str] = set()
        self.hidden_looks = 0
        self.created: list[tuple[str, int, Mapping[str, str]]] = []
        self.topic_id = "id"
        self.name: str | None = "here"
        self.copy_partitions = 0
        self.restoring: set[str] = set()
        self.changes: dict[float, Callable[[], object]] = {}
        """Changes of the source by time."""
        self.sent: list[dict[str, Any]] = []
        self.farewells: list[dict[str, Any]] = []
        self.results: list[DeliveryResult | None] = []
        self.stall = 0.0
        self.closed = False
        self.renewed_at: list[float] = []
        self.before_stop: Callable[[], object] = lambda: None

    def clock(self) -> float:
        return self.now + self.clock_step

    def timer(self) -> float:
        return self.now

    def create_topic(
        self, topic: str, *, partitions: int, config: Mapping[str, str] | None = None
    ) -> bool:
        if self.refusals:
            self.now += 2.0
            raise self.refusals.pop(0)
        self.created.append((topic, partitions, config or {}))
        return True

    def start_identify(self, topic: str) -> Future[TopicIdentity | None]:
        there = {created[0] for created in self.created} | self.there
        answer: Future[TopicIdentity | None] = Future()
        if self.created and self.hidden_looks:
            self.hidden_looks -= 1
            there.clear()
        found = TopicIdentity(self.topic_id, self.partitions) if topic in there else None
        answer.set_result(found)
        return answer

    def is_restored(self, flow: str) -> bool:
        return flow not in self.restoring

    def delete_topic(self) -> None:
        self.there.clear()
        self.created.clear()

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
        for at in [at for at in self.changes if START + at <= self.now]:
            self.changes.pop(at)()

    def renew(self) -> None:
        self.renewed_at.append(self.now)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(work: Callable[[], object], _purpose: str) -> Future[object]:
        answer: Future[object] = Future()
        try:
            answer.set_result(work())
        except KafkaOperationError as problem:
            answer.set_exception(problem)
        return answer

    monkeypatch.setattr(canary_sender, "call_in_background", call)


def run(
    world: World,
    ledger_states: LedgerStates | None = None,
    flows: Sequence[str] = ("us->eu",),
    **changes: Any,
) -> list[Any]:
    """The events of *flows*, which share a carrier topic."""
    outbox = EventBuffer()
    loop = SendLoop(
        cast("HandleFactory", None),
        producer=lambda *_, **__: cast("RecordProducer", world),
        timer=world.timer,
    )
    carrier = CarrierTopic(
        spec(**changes),
        cast("ClusterClient", world),
        world.stopping,
        on_change=world.renew,
    )
    loop.add(carrier.run())
    for flow in flows:
        sender = CanarySender(
            spec(flow=flow, **changes),
            carrier,
            cast("RecordProducer", world),
            outbox,
            ledger_states=ledger_states or LedgerStates(),
            instance=lambda: world.name,
            is_restored=partial(world.is_restored, flow),
            copy_partitions=lambda: world.copy_partitions,
            clock=world.clock,
        )
        loop.add_sender(sender)
    loop.run(world.stopping)
    return outbox.take()


FIRST = int(START * 1000)


def test_canaries_are_sent_at_interval_to_partitions_in_turn() -> None:
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


def test_sent_canary_reports_scheduled_then_produced() -> None:
    world = World(1)
    assert run(world) == [
        InstanceNamed("us->eu", "here"),
        Scheduled("us->eu", FIRST, FIRST % 2, START),
        Produced("us->eu", FIRST, FIRST % 2, 41, START),
        StageSucceeded("us->eu", "us", "canary_send", START),
    ]


def test_stage_success_is_reported_once_a_second() -> None:
    events = run(World(11), interval_seconds=0.25)
    assert sum(isinstance(event, StageSucceeded) for event in events) == 3
    assert sum(isinstance(event, Produced) for event in events) == 11


def test_failed_produce_reports_reason() -> None:
    world = World(2)
    world.results = [TIMEOUT]
    events = run(world)
    assert events[2:4] == [
        ProduceFailed("us->eu", FIRST, "timeout", START),
        StageFailed("us->eu", "us", "canary_send", "timeout", str(TIMEOUT), START),
    ]
    assert isinstance(events[5], Produced)


def test_canaries_due_during_pause_are_skipped() -> None:
    world = World(4)
    world.stall = 10.0
    run(world)
    times = [record["at"] - START for record in world.sent]
    assert times == pytest.approx([0.0, 10.0, 10.0, 11.0])


def test_canaries_are_sent_at_interval_after_clock_was_set_back() -> None:
    world = World(4)
    world.changes[1.5] = lambda: setattr(world, "clock_step", -3600.0)
    events = run(world)
    assert [record["at"] - START for record in world.sent] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    times = [event.at - START for event in events if isinstance(event, Scheduled)]
    assert times == pytest.approx([0.0, 1.0, -3598.0, -3597.0])


def test_canaries_carry_ledger_state() -> None:
    world = World(1)
    run(world, {"us->eu": LedgerState(7, 9, 12.3456), "eu->us": LedgerState(1, 1)})
    (record,) = world.sent
    assert CanaryRecord.from_headers(record["headers"]) == CanaryRecord(
        instance="here",
        flow="us->eu",
        sequence=FIRST,
        sent_ms=FIRST,
        partition=FIRST % 2,
        floor=7,
        newest_arrived=9,
        settled_ms=12_345,
    )
    assert record["timestamp_ms"] == FIRST
    assert (record["key"], record["value"]) == (b"here/us->eu/%d" % (FIRST % 2), b"%d" % FIRST)


def test_final_canary_carries_ledger_state_and_is_not_counted() -> None:
    world, ledger_states = World(2), {"us->eu": LedgerState(floor=FIRST, newest_arrived=FIRST - 1)}
    world.before_stop = lambda: ledger_states.update({"us->eu": LedgerState(FIRST + 2, FIRST + 1)})
    events = run(world, ledger_states)
    (record,) = world.farewells
    farewell = CanaryRecord.from_headers(record["headers"])
    assert farewell is not None
    assert (farewell.sequence, farewell.partition) == (FIRST + 2, FIRST % 2)
    assert (farewell.floor, farewell.newest_arrived) == (FIRST + 2, FIRST + 1)
    counted = {event.sequence for event in events if isinstance(event, Scheduled | Produced)}
    assert counted == {FIRST, FIRST + 1}


def test_canary_on_heartbeats_topic_is_valid_heartbeat() -> None:
    world = World(1, partitions=1)
    run(world, carrier="heartbeats", source_topic="heartbeats")
    (record,) = world.sent
    beat = Heartbeat.decode(record["key"], record["value"])
    assert isinstance(beat, Heartbeat)
    assert is_canary_heartbeat(beat)
    assert (beat.target_alias, beat.timestamp_ms) == ("us", FIRST)
    assert world.created == [("heartbeats", 1, {"cleanup.policy": "compact"})]


def test_canary_topic_is_created_with_four_partitions() -> None:
    world = World(1)
    run(world)
    assert world.created == [("mm2slo.canary", 4, {"retention.ms": "86400000"})]


def test_existing_canary_topic_is_not_created() -> None:
    world = World(1)
    world.there = {"mm2slo.canary"}
    run(world)
    assert world.created == []
    assert len(world.sent) == 1


def test_canary_topic_visible_after_delay_loses_no_canary() -> None:
    world = World(1)
    world.hidden_looks = 2
    events = run(world)
    assert [type(event) for event in events[1:]] == [Scheduled, Produced, StageSucceeded]
    assert len(world.created) == 1


def test_canaries_without_topic_are_reported_as_failed() -> None:
    world = World(1)
    world.refusals = [TIMEOUT]
    events = run(world)
    (refused,) = (event for event in events if isinstance(event, StageFailed))
    assert (refused.stage, refused.kind) == ("canary_send", "timeout")
    failed = [event for event in events if isinstance(event, ProduceFailed)]
    assert [(event.sequence - FIRST, event.reason) for event in failed] == [
        (number, "no_topic") for number in range(5)
    ]
    scheduled = [event.sequence - FIRST for event in events if isinstance(event, Scheduled)]
    assert scheduled == [0, 1, 2, 3, 4, 5]
    assert len(world.sent) == 1


def partitions_by_second(world: World) -> list[tuple[int, int]]:
    return [(round(record["at"] - START), record["partition"]) for record in world.sent]


def test_canaries_are_sent_to_new_partitions_after_growth() -> None:
    world = World(30, partitions=1)
    world.there = {"mm2slo.canary"}
    world.changes[5.0] = lambda: setattr(world, "partitions", 3)
    events = run(world)
    sent = partitions_by_second(world)
    assert {partition for second, partition in sent if second <= 10} == {0}
    assert [partition for second, partition in sent if second > 12] == [
        (FIRST + second) % 3 for second in range(13, 30)
    ]
    # A producer knows the partitions of its last metadata request: a new one takes over.
    assert len(world.renewed_at) == 1
    assert not [event for event in events if isinstance(event, SourceTopicRecreated)]
    assert not [event for event in events if isinstance(event, ProduceFailed)]


def test_new_partitions_are_used_once_the_copy_has_them() -> None:
    """MirrorMaker 2 replicates them from its next refresh of topics on."""
    world = World(30, partitions=1)
    world.there.add("mm2slo.canary")
    world.copy_partitions = 1
    world.changes[2.0] = lambda: setattr(world, "partitions", 3)
    world.changes[20.0] = lambda: setattr(world, "copy_partitions", 3)
    run(world)
    sent = partitions_by_second(world)
    assert {partition for second, partition in sent if second < 20} == {0}
    assert {partition for second, partition in sent if second > 20} == {0, 1, 2}


def test_canaries_of_replica_without_name_are_reported_as_failed() -> None:
    world = World(2)
    world.name = None
    world.changes[3.0] = lambda: setattr(world, "name", "replica-1")
    events = run(world)
    failed = [event for event in events if isinstance(event, ProduceFailed)]
    assert [(event.sequence - FIRST, event.reason) for event in failed] == [
        (0, "no_instance"),
        (1, "no_instance"),
        (2, "no_instance"),
    ]
    assert InstanceNamed("us->eu", "replica-1") in events
    assert {dict(sent["headers"])["mm2slo-instance"] for sent in world.sent} == {b"replica-1"}


def test_new_name_is_reported_before_canaries_that_carry_it() -> None:
    world = World(4)
    world.changes[2.0] = lambda: setattr(world, "name", "replica-3")
    events = run(world)
    named = [event for event in events if isinstance(event, InstanceNamed)]
    assert named == [InstanceNamed("us->eu", "here"), InstanceNamed("us->eu", "replica-3")]
    carried = [dict(sent["headers"])["mm2slo-instance"] for sent in world.sent]
    assert carried == [b"here", b"here", b"replica-3", b"replica-3"]


def test_recreated_topic_is_reported_and_its_partitions_used() -> None:
    world = World(30, partitions=4)
    world.there = {"mm2slo.canary"}

    def recreate() -> None:
        world.topic_id, world.partitions = "another id", 2

    world.changes[5.0] = recreate
    events = run(world)
    (recreated,) = (event for event in events if isinstance(event, SourceTopicRecreated))
    assert recreated.flow == "us->eu"
    assert {partition for second, partition in partitions_by_second(world) if second > 12} == {0, 1}
    assert len(world.renewed_at) == 1
    assert world.created == []


def test_deleted_topic_is_created_again_after_a_delay() -> None:
    world = World(30)
    world.there = {"mm2slo.canary"}
    clock = world.clock

    def delete() -> None:
        world.delete_topic()
        world.topic_id = "another id"

    world.changes[5.0] = delete
    events = run(world)
    assert world.created == [("mm2slo.canary", 4, {"retention.ms": "86400000"})]
    (recreated,) = (event for event in events if isinstance(event, SourceTopicRecreated))
    failed = [event for event in events if isinstance(event, ProduceFailed)]
    assert {event.reason for event in failed} == {"no_topic"}
    assert len(failed) == 5
    assert failed[-1].at < recreated.at <= clock()


def test_topic_that_cannot_be_described_is_reported_and_canaries_continue() -> None:
    world = World(30)
    world.there = {"mm2slo.canary"}
    describe = world.start_identify

    def refuse(topic: str) -> Future[TopicIdentity | None]:
        if world.now < START + 5.0:
            return describe(topic)
        answer: Future[TopicIdentity | None] = Future()
        answer.set_exception(TIMEOUT)
        return answer

    world.start_identify = refuse  # type: ignore[method-assign]
    events = run(world)
    failures = [event for event in events if isinstance(event, StageFailed)]
    assert {event.kind for event in failures} == {"timeout"}
    assert len(partitions_by_second(world)) == 30
    assert world.renewed_at == []


def sent_seconds(world: World, flow: str) -> list[int]:
    return [
        round(record["at"] - START)
        for record in world.sent
        if dict(record["headers"])["mm2slo-flow"] == flow.encode()
    ]


def test_flow_that_is_restored_does_not_delay_the_others() -> None:
    world = World(20)
    world.restoring = {"us->ap"}
    world.changes[8.0] = world.restoring.clear
    run(world, flows=("us->ap", "us->eu"))
    assert sent_seconds(world, "us->eu") == list(range(14))
    assert sent_seconds(world, "us->ap") == [8, 9, 10, 11, 12, 13]


def test_refused_canary_fails_its_flow_only() -> None:
    world = World(6)
    send = world.send

    def refuse(topic: str, *, on_delivery: Callable[[DeliveryResult], None], **record: Any) -> None:
        refused = dict(record["headers"])["mm2slo-flow"] == b"us->ap"
        report = (lambda _result: on_delivery(TIMEOUT)) if refused else on_delivery
        send(topic, on_delivery=report, **record)

    world.send = refuse  # type: ignore[method-assign]
    events = run(world, flows=("us->ap", "us->eu"))
    assert {event.flow for event in events if isinstance(event, ProduceFailed | StageFailed)} == {
        "us->ap"
    }
    assert [event.flow for event in events if isinstance(event, Produced)] == ["us->eu"] * 3


def test_flows_that_share_a_topic_renew_the_producer_once_and_report_each() -> None:
    world = World(60, partitions=4)
    world.there = {"mm2slo.canary"}

    def recreate() -> None:
        world.topic_id, world.partitions = "another id", 2

    world.changes[5.0] = recreate
    events = run(world, flows=("us->ap", "us->eu"))
    recreated = [event.flow for event in events if isinstance(event, SourceTopicRecreated)]
    assert sorted(recreated) == ["us->ap", "us->eu"]
    assert len(world.renewed_at) == 1


def test_canary_spec_repr_has_no_secrets() -> None:
    assert "s3cret" not in repr(spec())
