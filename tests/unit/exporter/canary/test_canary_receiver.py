"""Arrivals on the target: canaries of this instance and MirrorMaker 2's heartbeats only."""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from canary_specs import spec

from mm2slo_core.indicators.canary_rules import CanaryRecord
from mm2slo_core.records.mirror_records import Heartbeat
from mm2slo_exporter.canary import canary_receiver
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    CanaryEvent,
    EarlierCanary,
    EventBuffer,
    HeartbeatSeen,
    InstanceNamed,
    Malformed,
    ReadUpTo,
    RestoreFinished,
    StageFailed,
    StageSucceeded,
    TargetReadRestarted,
)
from mm2slo_exporter.canary.canary_receiver import (
    ArrivalReader,
    CanaryReceiver,
    CopyStream,
    EarlierCanaries,
)
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import (
    Restarted,
    RestartReason,
    TailBatch,
    TailedTopic,
    TailRecord,
    TailState,
    TopicDescription,
)

CARRIER, COPY = "mm2slo.canary", "us.mm2slo.canary"
BEATS = "us.heartbeats"


@dataclass
class Topics:
    """Records of each topic: existing ones, then later ones; then the test ends."""

    stopping: threading.Event = field(default_factory=threading.Event)
    there: dict[str, list[TailRecord]] = field(default_factory=dict)
    later: dict[str, list[TailRecord]] = field(default_factory=dict)
    states: dict[str, TailState] = field(default_factory=dict)
    problems: dict[str, KafkaOperationError] = field(default_factory=dict)
    unanswered: dict[str, int] = field(default_factory=dict)
    """Polls of a topic before its cluster answers; until then they fail with its problem."""
    opened: list[tuple[str, float]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


class Tail:
    """A fake TopicTail of the source."""

    def __init__(self, topics: Topics, topic: str, start: float) -> None:
        topics.opened.append((topic, start))
        self._topics = topics
        self.topic = topic
        self.state = topics.states.get(topic, TailState.READING)
        self.caught_up = False

    def poll(self, max_records: int, timeout: float) -> TailBatch:
        del max_records, timeout
        if self._topics.unanswered.get(self.topic, 0) > 0:
            self._topics.unanswered[self.topic] -= 1
            return TailBatch([], None, self._topics.problems.get(self.topic))
        self.caught_up = self.state is TailState.READING
        records = self._topics.there.pop(self.topic, [])
        return TailBatch(records, None, self._topics.problems.get(self.topic))

    def close(self) -> None:
        self._topics.closed.append(self.topic)


class Group:
    """A fake TailGroup of the target; each topic has two partitions."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._tailed: dict[str, TailedTopic] = {}

    def add(self, tailed: TailedTopic) -> None:
        assert isinstance(tailed.start, float)
        self._topics.opened.append((tailed.topic, tailed.start))
        self._tailed[tailed.topic] = tailed

    def remove(self, topic: str) -> None:
        del self._tailed[topic]

    def poll(self, _max_records: int, _timeout: float) -> dict[str, TailBatch]:
        found = {topic: self._poll(tailed) for topic, tailed in self._tailed.items()}
        batches = {topic: batch for topic, batch in found.items() if batch is not None}
        tails = self._tailed.values()
        if any(
            tailed.problem is not None
            for tailed in tails
            if tailed.topic in self._topics.unanswered
        ):
            return batches
        is_done = len(batches) == len(self._tailed) > 0 and not any(
            batch.records for batch in batches.values()
        )
        if is_done and not any(self._topics.later.values()):
            self._topics.stopping.set()
        return batches

    def _poll(self, tailed: TailedTopic) -> TailBatch | None:
        topics, topic = self._topics, tailed.topic
        problem = topics.problems.get(topic)
        if topics.unanswered.get(topic, 0) > 0:
            topics.unanswered[topic] -= 1
            tailed.problem = problem
            return None if problem is None else TailBatch([], None, problem)
        tailed.problem = None if topic in topics.unanswered else problem
        state = topics.states.get(topic, TailState.READING)
        if tailed.problem is not None or state is not TailState.READING:
            tailed.state = state
            return TailBatch([], None, tailed.problem)
        records = (topics.later if tailed.caught_up else topics.there).pop(topic, [])
        if not tailed.positions:
            end = records[-1].offset + 1 if records else 0
            tailed.describe(
                TopicDescription(TopicIdentity("id", 2), {0: 0, 1: None}, {0: end, 1: 0})
            )
        for record in records:
            tailed.take(record.partition, record.offset)
        return TailBatch(records, None, None)

    def close(self) -> None:
        self._topics.closed += self._tailed


def canary(
    sequence: int, *, instance: str = "here", flow: str = "us->eu", partition: int = 0
) -> TailRecord:
    made = CanaryRecord(
        instance=instance,
        flow=flow,
        sequence=sequence,
        sent_ms=sequence * 1000,
        partition=partition,
        floor=3,
        newest_arrived=5,
    )
    key, value = made.heartbeat("us")
    headers = [(name, bytes(text)) for name, text in made.headers()]
    return TailRecord(partition, 10 + sequence, None, key, value, list(headers))


def beat(second: int, emitter: str = "us") -> TailRecord:
    made = Heartbeat(emitter, "eu", second * 1000)
    return TailRecord(0, second, None, made.encode_key(), made.encode_value(), [])


def broken(**parts: Any) -> TailRecord:
    return beat(1)._replace(**parts)


def run(
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
    *,
    instance: Callable[[], str | None] = lambda: "here",
    **changes: Any,
) -> list[CanaryEvent]:
    def make_tail(_client: object, topic: str, *, start: float, headers: bool) -> Tail:
        assert headers
        return Tail(topics, topic, start)

    def make_group(_client: object, *, isolation: str, headers: bool) -> Group:
        assert (isolation, headers) == ("read_committed", True)
        return Group(topics)

    monkeypatch.setattr(canary_receiver, "TopicTail", make_tail)
    monkeypatch.setattr(canary_receiver, "TailGroup", make_group)
    outbox = EventBuffer()
    receiver = CanaryReceiver(spec(**changes), outbox, instance=instance)
    reader = ArrivalReader(cast("ClusterClient", None))
    reader.add(receiver)
    if changes.get("carrier") != "off":
        source = cast("ClusterClient", None)
        topic = changes.get("source_topic", CARRIER)
        if EarlierCanaries(source, topic, [receiver], instance).report(topics.stopping):
            reader.add_canaries(receiver)
    topics.stopping.clear()
    reader.run(topics.stopping)
    return outbox.take()


def kinds(events: list[CanaryEvent], *wanted: type) -> list[Any]:
    return [event for event in events if isinstance(event, wanted)]


def test_existing_records_are_reported_before_restore_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = Topics(
        there={CARRIER: [canary(1), canary(2)], COPY: [canary(1)], BEATS: [beat(7)]},
        later={COPY: [canary(2, partition=1)], BEATS: [beat(8)]},
    )
    events = run(topics, monkeypatch)
    at = events.index(kinds(events, RestoreFinished)[0])
    before, after = events[:at], events[at + 1 :]
    assert kinds(before, EarlierCanary) == [
        EarlierCanary("us->eu", 1, 0, 11, 1.0, 3, 5),
        EarlierCanary("us->eu", 2, 0, 12, 2.0, 3, 5),
    ]
    assert [(seen.sequence, seen.partition) for seen in kinds(before, Arrived)] == [(1, 0)]
    assert [(seen.sequence, seen.partition) for seen in kinds(after, Arrived)] == [(2, 1)]
    assert [(b.emitted_at, b.replayed) for b in kinds(before, HeartbeatSeen)] == [(7.0, True)]
    assert [(b.emitted_at, b.replayed) for b in kinds(after, HeartbeatSeen)] == [(8.0, False)]
    assert sorted(topics.closed) == sorted([CARRIER, COPY, BEATS])


def test_records_are_restored_only_once_the_target_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = Topics(there={COPY: [canary(1)], BEATS: [beat(7)]}, unanswered={COPY: 9, BEATS: 9})
    events = run(topics, monkeypatch)
    before = events[: events.index(kinds(events, RestoreFinished)[0])]
    assert len(kinds(before, Arrived)) == 1
    assert [b.replayed for b in kinds(events, HeartbeatSeen)] == [True]


@pytest.mark.parametrize("kind", ErrorKind)
def test_history_is_not_new_after_any_failure_to_read_its_start(
    kind: ErrorKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is down at the start; heartbeats of an hour were counted as new ones."""
    problem = KafkaOperationError(kind, cluster="eu", operation="reading", detail="no")
    topics = Topics(
        there={CARRIER: [canary(1)], COPY: [canary(1)], BEATS: [beat(7)]},
        later={COPY: [canary(2)], BEATS: [beat(8)]},
        unanswered={COPY: 3, BEATS: 3},
        problems={COPY: problem, BEATS: problem},
    )
    events = run(topics, monkeypatch)
    assert [(b.emitted_at, b.replayed) for b in kinds(events, HeartbeatSeen)] == [
        (7.0, True),
        (8.0, False),
    ]
    found = kinds(events, Arrived, RestoreFinished)
    assert [getattr(each, "sequence", "restored") for each in found] == [1, "restored", 2]


@pytest.mark.parametrize("kind", [each for each in ErrorKind if each != "authorization"])
def test_earlier_canaries_are_awaited_until_the_source_answers(
    kind: ErrorKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the process before had no outcome if the source was away for 15 seconds."""
    problem = KafkaOperationError(kind, cluster="us", operation="reading", detail="no")
    topics = Topics(
        there={CARRIER: [canary(1)], COPY: [canary(1)]},
        unanswered={CARRIER: 3},
        problems={CARRIER: problem},
    )
    clock = SimpleNamespace(monotonic=itertools.count(0, 1000).__next__, time=time.time)
    monkeypatch.setattr(canary_receiver, "time", clock)
    events = run(topics, monkeypatch)
    found = kinds(events, EarlierCanary, Arrived, RestoreFinished)
    assert [type(each) for each in found] == [EarlierCanary, Arrived, RestoreFinished]


def test_reread_heartbeats_are_not_new() -> None:
    """Retention removed what was to be read next, so the topic is read from its start again."""
    receiver = CanaryReceiver(spec(), outbox := EventBuffer(), instance=lambda: "here")
    stream, tailed = follow(receiver, BEATS)
    stream.take(tailed, TailBatch([], None, None))
    stream.take(tailed, TailBatch([beat(1)], Restarted(RestartReason.OFFSET_OUT_OF_RANGE), None))
    stream.take(tailed, TailBatch([beat(2)], None, None))
    beats = kinds(outbox.take(), HeartbeatSeen)
    assert [(b.emitted_at, b.replayed) for b in beats] == [(1.0, True), (2.0, False)]


def test_topic_without_permission_does_not_hold_back_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="eu", operation="reading", detail="denied"
    )
    topics = Topics(
        there={COPY: [canary(1)]},
        unanswered={BEATS: 3},
        problems={BEATS: denied},
    )
    events = run(topics, monkeypatch)
    assert len(kinds(events, RestoreFinished)) == 1
    assert len(kinds(events, Arrived)) == 1


def test_topics_are_read_from_an_hour_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mm2slo_exporter.canary.canary_receiver.time.time", lambda: 10_000.0)
    topics = Topics()
    run(topics, monkeypatch)
    assert sorted(topics.opened) == [(CARRIER, 6_400.0), (BEATS, 6_400.0), (COPY, 6_400.0)]


def test_canaries_of_other_instances_and_flows_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    foreign = [canary(1, instance="there"), canary(2, flow="us->ap"), canary(3)]
    topics = Topics(there={CARRIER: list(foreign), COPY: list(foreign)})
    events = run(topics, monkeypatch)
    assert [event.sequence for event in kinds(events, EarlierCanary, Arrived)] == [3, 3]


def test_canaries_on_heartbeats_topic_are_not_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(
        there={"heartbeats": [beat(1), canary(1)]},
        later={BEATS: [beat(2), canary(1), canary(2, instance="there"), beat(3, "ap")]},
    )
    events = run(topics, monkeypatch, carrier="heartbeats", source_topic="heartbeats")
    assert [event.sequence for event in kinds(events, EarlierCanary)] == [1]
    assert [event.sequence for event in kinds(events, Arrived)] == [1]
    assert [(b.emitter, b.emitted_at) for b in kinds(events, HeartbeatSeen)] == [
        ("us", 2.0),
        ("ap", 3.0),
    ]


def test_receiver_with_carrier_off_reads_heartbeats_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = Topics(later={BEATS: [beat(2), canary(1)]})
    events = run(topics, monkeypatch, carrier="off")
    assert [topic for topic, _ in topics.opened] == [BEATS]
    assert [b.emitted_at for b in kinds(events, HeartbeatSeen)] == [2.0]
    assert kinds(events, Arrived, EarlierCanary, ReadUpTo) == []
    assert {event.stage for event in kinds(events, StageSucceeded)} == {"heartbeats"}


def test_receiver_without_topics_is_restored_at_once() -> None:
    receiver = CanaryReceiver(
        spec(carrier="off", heartbeats_topic_on_target=None),
        outbox := EventBuffer(),
        instance=lambda: None,
    )
    receiver.report(9.0)
    assert (receiver.canaries, receiver.heartbeats) == ((), ())
    assert outbox.take() == [RestoreFinished("us->eu", 9.0)]


def test_malformed_records_are_reported_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = canary(1)._replace(
        headers=[
            ("mm2slo-instance", b"here"),
            ("mm2slo-flow", b"us->eu"),
            ("mm2slo-sequence", b"x"),
        ]
    )
    topics = Topics(
        later={
            COPY: [damaged, canary(2)],
            BEATS: [broken(value=b"\x00"), broken(key=None), broken(value=None), beat(4)],
        }
    )
    events = run(topics, monkeypatch)
    assert sorted(kinds(events, Malformed)) == [
        Malformed("us->eu", "eu", "canary", "unexpected_shape"),
        Malformed("us->eu", "eu", "heartbeat", "null_key"),
        Malformed("us->eu", "eu", "heartbeat", "truncated"),
    ]
    assert [event.sequence for event in kinds(events, Arrived)] == [2]
    assert [b.emitted_at for b in kinds(events, HeartbeatSeen)] == [4.0]


def test_read_position_is_reported_for_carrier_only(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(there={COPY: [canary(1)]})
    events = run(topics, monkeypatch)
    through = kinds(events, ReadUpTo)
    assert [(event.partition, event.offset) for event in through] == [(0, 12)]
    # After the arrivals up to that offset.
    assert events.index(through[0]) > events.index(kinds(events, Arrived)[0])
    assert {event.stage for event in kinds(events, StageSucceeded)} == {
        "canary_receive",
        "heartbeats",
    }


def test_earlier_canaries_that_cannot_be_read_fail_the_sources_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="us", operation="reading", detail="no"
    )
    topics = Topics(
        problems={CARRIER: denied}, states={CARRIER: TailState.STARTING}, later={BEATS: [beat(8)]}
    )
    events = run(topics, monkeypatch)
    (found,) = kinds(events, StageFailed)
    assert (found.cluster, found.stage, found.kind) == ("us", "canary_send", "authorization")
    assert events.index(found) < events.index(kinds(events, RestoreFinished)[0])
    assert [b.emitted_at for b in kinds(events, HeartbeatSeen)] == [8.0]


def follow(
    receiver: CanaryReceiver, topic: str = COPY, *, end: int = 0
) -> tuple[CopyStream, TailedTopic]:
    """A stream of the receiver, and its topic with one partition."""
    streams = (*receiver.canaries, *receiver.heartbeats)
    stream = next(each for each in streams if each.topic == topic)
    tailed = TailedTopic(topic)
    tailed.describe(TopicDescription(TopicIdentity("id", 1), {0: 0}, {0: end}))
    return stream, tailed


def test_problem_is_reported_once_per_interval() -> None:
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="eu", operation="reading", detail="no"
    )
    receiver = CanaryReceiver(spec(), outbox := EventBuffer(), instance=lambda: "here")
    stream, tailed = follow(receiver, end=1)
    tailed.fail(denied)
    stream.take(tailed, TailBatch([], None, denied))
    for at in (10.0, 10.4, 10.6):
        receiver.report(at)
    problems = outbox.take()
    assert [type(each) for each in problems] == [StageFailed, StageFailed]
    trouble = problems[0]
    assert isinstance(trouble, StageFailed)
    assert (trouble.cluster, trouble.stage, trouble.kind) == (
        "eu",
        "canary_receive",
        "authorization",
    )


def test_unreadable_topic_of_canaries_and_heartbeats_fails_both_stages() -> None:
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="eu", operation="reading", detail="no"
    )
    receiver = CanaryReceiver(
        spec(carrier="heartbeats"), outbox := EventBuffer(), instance=lambda: "here"
    )
    tailed = TailedTopic(BEATS)
    tailed.fail(denied)
    for stream in (*receiver.canaries, *receiver.heartbeats):
        stream.take(tailed, TailBatch([], None, denied))
    receiver.report(10.0)
    stages = [event.stage for event in kinds(list(outbox.take()), StageFailed)]
    assert stages == ["canary_receive", "heartbeats"]


def test_recreated_copy_is_reported_before_its_records() -> None:
    receiver = CanaryReceiver(spec(), outbox := EventBuffer(), instance=lambda: "here")
    stream, tailed = follow(receiver)
    stream.take(tailed, TailBatch([canary(1)], Restarted(RestartReason.RECREATED), None))
    beats, tailed = follow(receiver, BEATS)
    beats.take(tailed, TailBatch([canary(1)], Restarted(RestartReason.RECREATED), None))
    restarted, arrived = kinds(outbox.take(), TargetReadRestarted, Arrived)
    assert isinstance(restarted, TargetReadRestarted)
    assert isinstance(arrived, Arrived)
    assert arrived.reread


def test_name_is_awaited_and_reported_before_earlier_canaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which canaries are this replica's is not known before."""
    names = iter([None, None, "replica-1"])
    topics = Topics(there={CARRIER: [canary(7, instance="replica-1"), canary(8)]})
    events = run(topics, monkeypatch, instance=lambda: next(names, "replica-1"))
    assert events[0] == InstanceNamed("us->eu", "replica-1")
    assert [event.sequence for event in events if isinstance(event, EarlierCanary)] == [7]


def test_heartbeats_are_read_while_there_is_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source may be down, whose canaries show which copies belong to this replica."""
    topics = Topics(there={"heartbeats": [canary(1)], BEATS: [beat(2), canary(1)]})
    topics.stopping.set()
    changes = {"carrier": "heartbeats", "source_topic": "heartbeats"}
    events = run(topics, monkeypatch, instance=lambda: None, **changes)
    assert {topic for topic, _ in topics.opened} == {BEATS}
    assert kinds(events, InstanceNamed, Arrived, EarlierCanary, RestoreFinished) == []
    assert [event.emitted_at for event in kinds(events, HeartbeatSeen)] == [2.0]


def test_arrivals_are_new_again_after_copy_was_reread_to_its_end() -> None:
    receiver = CanaryReceiver(spec(), outbox := EventBuffer(), instance=lambda: "here")
    stream, tailed = follow(receiver)
    stream.take(tailed, TailBatch([canary(1)], Restarted(RestartReason.RECREATED), None))
    stream.take(tailed, TailBatch([canary(2)], None, None))
    arrivals = [event for event in outbox.take() if isinstance(event, Arrived)]
    assert [(event.sequence, event.reread) for event in arrivals] == [(1, True), (2, False)]
    assert receiver.copy_partitions == 1


def test_flow_that_is_restored_does_not_delay_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two flows to a target reads a topic whose leader does not answer."""
    topics = Topics(
        there={"ap.mm2slo.canary": [canary(7, flow="ap->eu")]},
        later={"ap.mm2slo.canary": [canary(8, flow="ap->eu")]},
        unanswered={COPY: 1},
        states={COPY: TailState.STARTING},
    )
    monkeypatch.setattr(canary_receiver, "TailGroup", lambda *_, **__: Group(topics))
    outbox, reader = EventBuffer(), ArrivalReader(cast("ClusterClient", None))
    flows = {"us->eu": COPY, "ap->eu": "ap.mm2slo.canary"}
    receivers = [
        CanaryReceiver(
            spec(flow=flow, target_topic=topic, heartbeats_topic_on_target=None),
            outbox,
            instance=lambda: "here",
        )
        for flow, topic in flows.items()
    ]
    for receiver in receivers:
        reader.add(receiver)
        reader.add_canaries(receiver)
    reader.run(topics.stopping)
    assert [receiver.is_restored for receiver in receivers] == [False, True]
    events = outbox.take()
    assert [event.flow for event in kinds(events, RestoreFinished)] == ["ap->eu"]
    arrivals = kinds(events, Arrived)
    assert [(each.sequence, each.reread) for each in arrivals] == [(7, True), (8, False)]


def test_topic_of_several_flows_is_read_once_and_its_canaries_belong_to_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = Topics(there={CARRIER: [canary(1), canary(2, flow="us->ap")]})
    monkeypatch.setattr(
        canary_receiver, "TopicTail", lambda _c, topic, **_: Tail(topics, topic, 0.0)
    )
    outbox = EventBuffer()
    receivers = [
        CanaryReceiver(spec(flow=flow), outbox, instance=lambda: "here")
        for flow in ("us->eu", "us->ap")
    ]
    source = cast("ClusterClient", None)
    EarlierCanaries(source, CARRIER, receivers, lambda: "here").report(topics.stopping)
    found = kinds(outbox.take(), EarlierCanary)
    assert [(event.flow, event.sequence) for event in found] == [("us->eu", 1), ("us->ap", 2)]
    assert len(topics.opened) == 1
