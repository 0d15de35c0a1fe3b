"""Arrivals on the target: canaries of this instance and MirrorMaker 2's heartbeats only."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from canary_specs import spec

from mm2slo_core.canary_record import CanaryRecord
from mm2slo_core.records import Heartbeat
from mm2slo_exporter.canary import canary_receiver
from mm2slo_exporter.canary.canary_events import (
    Arrived,
    EarlierCanary,
    HeartbeatSeen,
    InstanceNamed,
    Malformed,
    ReadUpTo,
    RestoreFinished,
    StageFailed,
    StageSucceeded,
    TargetReadRestarted,
)
from mm2slo_exporter.canary.event_outbox import Outbox
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import Batch, Restarted, RestartReason, TailRecord, TailState

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from mm2slo_exporter.canary.canary_events import Event
    from mm2slo_kafka.cluster_client import ClusterClient

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
    """Polls of a topic before its cluster answers."""
    opened: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


class Tail:
    """A fake TopicTail."""

    def __init__(self, topics: Topics, client: str, topic: str, **options: Any) -> None:
        topics.opened.append((client, topic, options))
        self._topics = topics
        self.topic = topic
        self.state = topics.states.get(topic, TailState.READING)
        self.problem = topics.problems.get(topic)
        self.caught_up = False
        self.position: dict[int, int | None] = {0: 0, 1: None}

    def poll(self, max_records: int, timeout: float) -> Batch:
        del timeout
        if self._topics.unanswered.get(self.topic, 0) > 0:
            self._topics.unanswered[self.topic] -= 1
            return Batch([], None, None)
        waiting = self._topics.there if not self.caught_up else self._topics.later
        records = waiting.get(self.topic, [])
        taken = records[:max_records]
        del records[:max_records]
        if not records:
            if self.caught_up and not any(self._topics.later.values()):
                self._topics.stopping.set()
            self.caught_up = self.state is TailState.READING
        if taken:
            self.position = {0: taken[-1].offset + 1, 1: None}
        return Batch(taken, None, self.problem)

    def close(self) -> None:
        self._topics.closed.append(self.topic)


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
) -> list[Event]:
    monkeypatch.setattr(
        canary_receiver,
        "TopicTail",
        lambda client, topic, **options: Tail(topics, client, topic, **options),
    )
    outbox, restored = Outbox(), threading.Event()
    source, target = (cast("ClusterClient", alias) for alias in ("us", "eu"))
    made = canary_receiver.Receiver(
        spec(**changes), source, target, outbox, restored, instance=instance
    )
    thread = threading.Thread(target=made.run, args=(topics.stopping,))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert restored.is_set()
    return outbox.take()


def kinds(events: list[Event], *wanted: type) -> list[Any]:
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
    monkeypatch.setattr(canary_receiver, "_RESTORE_TIMEOUT_SECONDS", 0.0)
    topics = Topics(there={COPY: [canary(1)], BEATS: [beat(7)]}, unanswered={COPY: 9, BEATS: 9})
    events = run(topics, monkeypatch)
    before = events[: events.index(kinds(events, RestoreFinished)[0])]
    assert len(kinds(before, Arrived)) == 1
    assert [b.replayed for b in kinds(events, HeartbeatSeen)] == [True]


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


def test_topics_are_opened_with_cluster_start_and_isolation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mm2slo_exporter.canary.canary_receiver.time.time", lambda: 10_000.0)
    topics = Topics()
    run(topics, monkeypatch)
    where = {(client, topic): options for client, topic, options in topics.opened}
    assert where.keys() == {("us", CARRIER), ("eu", COPY), ("eu", BEATS)}
    assert {options["start"] for options in where.values()} == {6_400.0}
    assert all(options["headers"] for options in where.values())
    assert where["eu", COPY]["isolation"] == "read_committed"
    assert "isolation" not in where["us", CARRIER]


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
    assert [topic for _client, topic, _ in topics.opened] == [BEATS]
    assert [b.emitted_at for b in kinds(events, HeartbeatSeen)] == [2.0]
    assert kinds(events, Arrived, EarlierCanary, ReadUpTo) == []
    assert {event.stage for event in kinds(events, StageSucceeded)} == {"heartbeats"}


def test_receiver_without_topics_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics()
    topics.stopping.set()
    events = run(topics, monkeypatch, carrier="off", heartbeats_topic_on_target=None)
    assert kinds(events, RestoreFinished) == events
    assert topics.opened == []


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
    monkeypatch.setattr(canary_receiver, "_RESTORE_TIMEOUT_SECONDS", 0.05)
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


def test_tail_problem_is_reported_once_per_interval() -> None:
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="eu", operation="reading", detail="no"
    )
    topics = Topics(problems={COPY: denied}, states={BEATS: TailState.STARTING})
    topics.stopping.set()
    made = canary_receiver.Receiver(
        spec(), cast("ClusterClient", "us"), cast("ClusterClient", "eu"), outbox := Outbox(),
        threading.Event(), instance=lambda: "here",
    )  # fmt: skip
    for topic, canaries in ((COPY, True), (BEATS, False)):
        tail = cast("Any", Tail(topics, "eu", topic))
        stream = canary_receiver._Stream(tail, heartbeats=not canaries, canaries=canaries)
        made._receive(stream, max_records=1, timeout=0.0)
        made._receive(stream, max_records=1, timeout=0.0)  # within half a second: reported once
    (trouble,) = outbox.take()
    assert isinstance(trouble, StageFailed)
    assert (trouble.cluster, trouble.stage, trouble.kind) == (
        "eu",
        "canary_receive",
        "authorization",
    )


def test_recreated_copy_is_reported_before_its_records() -> None:
    topics = Topics()
    made = canary_receiver.Receiver(
        spec(), cast("ClusterClient", "us"), cast("ClusterClient", "eu"), outbox := Outbox(),
        threading.Event(), instance=lambda: "here",
    )  # fmt: skip

    class RecreatedTail(Tail):
        def poll(self, max_records: int, timeout: float) -> Batch:
            del max_records, timeout
            return Batch([canary(1)], Restarted(RestartReason.RECREATED), None)

    for canaries in (True, False):
        tail = cast("Any", RecreatedTail(topics, "eu", COPY))
        stream = canary_receiver._Stream(tail, heartbeats=not canaries, canaries=canaries)
        made._receive(stream, max_records=1, timeout=0.0)
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


def test_receiver_goes_on_without_name_when_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source may be down: heartbeats on the target are read nevertheless."""
    monkeypatch.setattr(canary_receiver, "_INSTANCE_TIMEOUT_SECONDS", 0.0)
    topics = Topics(there={BEATS: [beat(2)]}, later={COPY: [canary(1)]})
    events = run(topics, monkeypatch, instance=lambda: None)
    assert {topic for _, topic, _ in topics.opened} == {COPY, BEATS}
    assert [event for event in events if isinstance(event, InstanceNamed | Arrived)] == []
    assert [event.emitted_at for event in events if isinstance(event, HeartbeatSeen)] == [2.0]


def test_arrivals_are_new_again_after_copy_was_reread_to_its_end() -> None:
    made = canary_receiver.Receiver(
        spec(), cast("ClusterClient", "us"), cast("ClusterClient", "eu"), outbox := Outbox(),
        threading.Event(), instance=lambda: "here",
    )  # fmt: skip
    tail = cast(
        "Any", Tail(Topics(there={COPY: [canary(1)]}, later={COPY: [canary(2)]}), "eu", COPY)
    )
    stream = canary_receiver._Stream(tail, heartbeats=False, canaries=True, rereads=True)
    made._receive(stream, max_records=1, timeout=0.0)
    made._receive(stream, max_records=1, timeout=0.0)
    arrivals = [event for event in outbox.take() if isinstance(event, Arrived)]
    assert [(event.sequence, event.reread) for event in arrivals] == [(1, True), (2, False)]
    assert made.copy_partitions == 2
