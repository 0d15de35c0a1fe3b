"""Sends the canaries of all flows from one source, in one thread with one producer.

A carrier topic on the source carries the canaries of one or more flows.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from itertools import count
from typing import TypeVar

from mm2slo_core.indicators.canary_rules import CanaryRecord
from mm2slo_exporter.canary.canary_messages import (
    CanarySpec,
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
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, call_in_background
from mm2slo_kafka.record_producer import Delivered, DeliveryResult, RecordProducer

_DELIVERY_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.2


class SendLoop:
    """Runs each step when it is due; steps never wait for the cluster."""

    def __init__(
        self,
        handles: HandleFactory,
        *,
        producer: Callable[..., RecordProducer] = RecordProducer,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """*timer* decides what is due: the clock may be set back."""
        self.producer = producer(handles, delivery_timeout_seconds=_DELIVERY_TIMEOUT_SECONDS)
        self._timer = timer
        self._senders: list[CanarySender] = []
        self._agenda: list[tuple[float, int, Iterator[float]]] = []
        """Steps by the time of the next one; numbers decide between equal times."""
        self._number = count()

    def add(self, steps: Iterator[float]) -> None:
        """Run *steps*, each of which yields the seconds until the next one."""
        heapq.heappush(self._agenda, (0.0, next(self._number), steps))

    def add_sender(self, sender: CanarySender) -> None:
        self._senders.append(sender)
        self.add(sender.run(self._timer))

    def run(self, stopping: threading.Event) -> None:
        """Send until *stopping* is set, then the final canaries."""
        try:
            while not stopping.is_set():
                due, number, steps = self._agenda[0]
                left = due - self._timer()
                self.producer.poll(max(0.0, min(left, _POLL_SECONDS)))
                if left <= 0:
                    due = next(steps) + self._timer()
                    heapq.heapreplace(self._agenda, (due, number, steps))
            for sender in self._senders:
                sender.finish()
        finally:
            self.producer.close()


_RESTORE_TIMEOUT_SECONDS = 30.0
_WAIT_SECONDS = 0.2
_REPORT_SECONDS = 1.0


class CanarySender:
    """Sends one flow's canaries.

    Sequences start at the start time in milliseconds, so that they ascend over restarts without
    stored state, as long as fewer than 1,000 canaries are sent per second.
    """

    def __init__(
        self,
        spec: CanarySpec,
        carrier: CarrierTopic,
        producer: RecordProducer,
        outbox: EventBuffer,
        *,
        ledger_states: LedgerStates,
        instance: Callable[[], str | None],
        is_restored: Callable[[], bool],
        copy_partitions: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*instance*: the name of this replica, None while it has none.

        *copy_partitions*: how many partitions the copy has, 0 if it is not known.
        """
        self._spec = spec
        self._carrier = carrier
        self._producer = producer
        self._outbox = outbox
        self._ledger_states = ledger_states
        self._instance = instance
        self._named: str | None = None
        self._is_restored = is_restored
        self._copy_partitions = copy_partitions
        self._clock = clock
        self._sequence = int(clock() * 1000)
        self._topic: TopicIdentity | None = None
        self._reported_at = 0.0
        self._reported_problem: KafkaOperationError | None = None

    def run(self, timer: Callable[[], float]) -> Iterator[float]:
        """Send from the restore on, or after 30 s; yields the seconds until the next step."""
        deadline = timer() + _RESTORE_TIMEOUT_SECONDS
        while not self._is_restored() and timer() < deadline:
            yield _WAIT_SECONDS
        while self._carrier.identity is None and self._carrier.problem is None:
            yield _WAIT_SECONDS
        due = timer()
        while True:
            self._send()
            self._sequence += 1
            due += self._spec.interval_seconds
            # Canaries that were due during a pause of the machine are not sent: a burst of them
            # would measure one moment as if it were many, and spend or earn budget for it.
            due = max(due, timer() - self._spec.interval_seconds)
            yield due - timer()

    def finish(self) -> None:
        """Send a canary that this process does not count.

        It carries the final ledger state: without it, the next process would count the last
        arrivals again.
        """
        if self._named is not None and self._topic is not None:
            self._produce(self._partition(self._topic), self._clock(), lambda _result: None)

    def _partition(self, topic: TopicIdentity) -> int:
        """The partition of the next canary.

        New partitions are used once MirrorMaker 2 has added them to the copy, which takes until
        it refreshes its topics.
        """
        return self._sequence % (min(topic.partitions, self._copy_partitions()) or topic.partitions)

    def _find_topic(self) -> TopicIdentity | None:
        """The carrier topic; reports its failures, and that it is another one."""
        problem, identity = self._carrier.problem, self._carrier.identity
        if problem is not None and problem is not self._reported_problem:
            self._reported_problem = problem
            self._report_failure(problem)
        if identity is not None:
            if self._topic is not None and is_recreated(self._topic, identity):
                self._outbox.put(SourceTopicRecreated(self._spec.flow, self._clock()))
            self._topic = identity
        return identity

    def _send(self) -> None:
        topic = self._find_topic()
        sequence, sent_at, flow = self._sequence, self._clock(), self._spec.flow
        partition = 0 if topic is None else self._partition(topic)
        name = self._instance()
        if name is not None and name != self._named:
            self._named = name
            self._outbox.put(InstanceNamed(flow, name))
        # Scheduled before it is sent, and even if it cannot be: counting only what the source took
        # would leave out the outage that is to be measured (coordinated omission).
        self._outbox.put(Scheduled(flow, sequence, partition, sent_at))
        if topic is None or name is None:
            reason = "no_topic" if topic is None else "no_instance"
            self._outbox.put(ProduceFailed(flow, sequence, reason, sent_at))
            return

        def delivered(result: DeliveryResult) -> None:
            self._delivered(sequence, partition, result)

        self._produce(partition, sent_at, delivered)

    def _produce(
        self, partition: int, sent_at: float, on_delivery: Callable[[DeliveryResult], None]
    ) -> None:
        spec = self._spec
        floor, newest_arrived, settled_to = self._ledger_states.get(spec.flow, LedgerState())
        canary = CanaryRecord(
            instance=self._named or "",
            flow=spec.flow,
            sequence=self._sequence,
            sent_ms=int(sent_at * 1000),
            partition=partition,
            floor=floor,
            newest_arrived=newest_arrived,
            settled_ms=None if settled_to is None else int(settled_to * 1000),
        )
        key, value = (
            canary.own() if spec.carrier == "topic" else canary.heartbeat(spec.source_alias)
        )
        self._producer.send(
            spec.source_topic,
            partition=partition,
            key=key,
            value=value,
            headers=canary.headers(),
            timestamp_ms=canary.sent_ms,
            on_delivery=on_delivery,
        )

    def _delivered(self, sequence: int, partition: int, result: DeliveryResult) -> None:
        now, flow = self._clock(), self._spec.flow
        if not isinstance(result, Delivered):
            self._outbox.put(ProduceFailed(flow, sequence, str(result.kind), now))
            self._report_failure(result)
            return
        self._outbox.put(Produced(flow, sequence, partition, result.offset, now))
        if abs(now - self._reported_at) >= _REPORT_SECONDS:
            self._reported_at = now
            self._outbox.put(
                StageSucceeded(
                    flow, self._spec.source_alias, CollectionStage.CANARY_SEND.value, now
                )
            )

    def _report_failure(self, problem: KafkaOperationError) -> None:
        self._outbox.put(
            StageFailed.of(
                problem,
                flow=self._spec.flow,
                cluster=self._spec.source_alias,
                stage=CollectionStage.CANARY_SEND.value,
                at=self._clock(),
            )
        )


T = TypeVar("T")
_OWN_TOPIC_PARTITIONS = 4
_VISIBLE_ATTEMPTS = 20
_VISIBLE_RETRY_SECONDS = 0.1
_REFRESH_SECONDS = 10.0
_RETRY_SECONDS = 5.0

_ANSWER_SECONDS = 0.05
"""How late an answer is noticed."""


class CarrierTopic:
    """Creates the topic while it is missing, and describes it every 10 s."""

    def __init__(
        self,
        spec: CanarySpec,
        source: ClusterClient,
        stopping: threading.Event,
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """*spec* may be of any flow whose canaries the topic carries."""
        self.identity: TopicIdentity | None = None
        """The newest description; None while the topic does not exist, or is not known."""
        self.problem: KafkaOperationError | None = None
        """The last failure to create or describe it, a new object each time."""
        self._spec = spec
        self._source = source
        self._stopping = stopping
        self._on_change = on_change

    def ensure(self) -> TopicIdentity:
        """Describe the topic, which is created if it is missing. Raises KafkaOperationError."""
        topic = self._spec.source_topic
        # No permission to create the topic is needed if it exists.
        identity = self._source.start_identify(topic).result()
        if identity is None:
            self._create()
            for _ in range(_VISIBLE_ATTEMPTS):
                identity = self._source.start_identify(topic).result()
                # A new topic becomes visible on brokers after a short delay.
                if identity is not None or self._stopping.wait(_VISIBLE_RETRY_SECONDS):
                    break
        if identity is None:
            raise KafkaOperationError(
                ErrorKind.UNKNOWN_TOPIC,
                cluster=self._spec.source_alias,
                operation=f"describing topic {topic!r}",
                detail="it was created, but is not visible yet",
            )
        return identity

    def run(self) -> Iterator[float]:
        """Keep the topic and its description; yields the seconds until the next step."""
        known: TopicIdentity | None = None
        while True:
            identity: TopicIdentity | None = yield from self._ensured()
            while identity is not None:
                if known not in (None, identity):
                    self._on_change()
                self.identity = known = identity
                yield _REFRESH_SECONDS
                identity = yield from self._described(known)
            self.identity = None
            # Whoever deleted it may create it again, with other settings than ours.
            yield _RETRY_SECONDS

    def _ensured(self) -> Generator[float, None, TopicIdentity]:
        while True:
            try:
                return (yield from self._answer(call_in_background(self.ensure, "carrier")))
            except KafkaOperationError as problem:
                self.problem = problem
            yield _RETRY_SECONDS

    def _described(self, known: TopicIdentity) -> Generator[float, None, TopicIdentity | None]:
        try:
            answer = self._source.start_identify(self._spec.source_topic)
            return (yield from self._answer(answer))
        except KafkaOperationError as problem:
            self.problem = problem
            return known

    def _answer(self, answer: Future[T]) -> Generator[float, None, T]:
        while not answer.done():
            yield _ANSWER_SECONDS
        result = answer.result()
        self.problem = None
        return result

    def _create(self) -> None:
        own = self._spec.carrier == "topic"
        self._source.create_topic(
            self._spec.source_topic,
            partitions=_OWN_TOPIC_PARTITIONS if own else 1,
            # The heartbeats topic as MirrorHeartbeatConnector creates it: one partition, compacted.
            config={"retention.ms": "86400000"} if own else {"cleanup.policy": "compact"},
        )


def is_recreated(known: TopicIdentity, current: TopicIdentity) -> bool:
    """Whether *current* is another topic of the same name.

    Without topic ids (brokers before 2.8, KIP-516), it is recognized only by fewer partitions:
    Kafka cannot remove partitions of a topic.
    """
    return current.topic_id != known.topic_id or current.partitions < known.partitions
