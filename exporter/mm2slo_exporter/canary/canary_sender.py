"""Sends one flow's canaries on the source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from mm2slo_core.canary_record import CanaryRecord
from mm2slo_exporter.canary.canary_events import (
    InstanceNamed,
    Produced,
    ProduceFailed,
    Scheduled,
    SourceTopicRecreated,
    StageFailed,
    StageSucceeded,
)
from mm2slo_exporter.canary.carrier_topic import is_recreated
from mm2slo_exporter.canary.ledger_state import LedgerState, LedgerStates
from mm2slo_exporter.collection_health import Stage
from mm2slo_kafka.record_producer import Delivered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_exporter.canary.carrier_topic import CarrierTopic
    from mm2slo_exporter.canary.event_outbox import Outbox
    from mm2slo_kafka.kafka_errors import KafkaOperationError
    from mm2slo_kafka.record_producer import DeliveryResult
    from mm2slo_kafka.topic_metadata import TopicIdentity

_RESTORE_TIMEOUT_SECONDS = 30.0
_WAIT_SECONDS = 0.2
_REPORT_SECONDS = 1.0


class CanaryProducer(Protocol):
    """The part of a producer that sends canaries."""

    def send(
        self,
        topic: str,
        *,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]],
        timestamp_ms: int | None,
        on_delivery: Callable[[DeliveryResult], None],
    ) -> None:
        """Queue one record; its result follows."""


class Sender:
    """Sends one flow's canaries.

    Sequences start at the start time in milliseconds, so that they ascend over restarts without
    stored state, as long as fewer than 1,000 canaries are sent per second.
    """

    def __init__(
        self,
        spec: CanarySpec,
        carrier: CarrierTopic,
        producer: CanaryProducer,
        outbox: Outbox,
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

    def run(self) -> Iterator[float]:
        """Send from the restore on, or after 30 s; yields the time of the next step."""
        deadline = self._clock() + _RESTORE_TIMEOUT_SECONDS
        while not self._is_restored() and self._clock() < deadline:
            yield self._clock() + _WAIT_SECONDS
        while self._carrier.identity is None and self._carrier.problem is None:
            yield self._clock() + _WAIT_SECONDS
        due = self._clock()
        while True:
            self._send(due)
            self._sequence += 1
            due += self._spec.interval_seconds
            # Canaries that were due during a pause of the machine are not sent.
            due = max(due, self._clock() - self._spec.interval_seconds)
            yield due

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
        problem, found = self._carrier.problem, self._carrier.identity
        if problem is not None and problem is not self._reported_problem:
            self._reported_problem = problem
            self._report_failure(str(problem.kind), str(problem))
        if found is not None:
            if self._topic is not None and is_recreated(self._topic, found):
                self._outbox.put(SourceTopicRecreated(self._spec.flow, self._clock()))
            self._topic = found
        return found

    def _send(self, due: float) -> None:
        topic = self._find_topic()
        sequence, sent_at, flow = self._sequence, self._clock(), self._spec.flow
        partition = 0 if topic is None else self._partition(topic)
        name = self._instance()
        if name is not None and name != self._named:
            self._named = name
            self._outbox.put(InstanceNamed(flow, name))
        self._outbox.put(Scheduled(flow, sequence, partition, max(due, sent_at)))
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
        if not isinstance(result, Delivered):
            self._failed(sequence, result)
            return
        now, flow = self._clock(), self._spec.flow
        self._outbox.put(Produced(flow, sequence, partition, result.offset, now))
        if now - self._reported_at >= _REPORT_SECONDS:
            self._reported_at = now
            self._outbox.put(
                StageSucceeded(flow, self._spec.source_alias, Stage.CANARY_SEND.value, now)
            )

    def _failed(self, sequence: int, problem: KafkaOperationError) -> None:
        kind = str(problem.kind)
        self._outbox.put(ProduceFailed(self._spec.flow, sequence, kind, self._clock()))
        self._report_failure(kind, str(problem))

    def _report_failure(self, kind: str, message: str) -> None:
        spec = self._spec
        self._outbox.put(
            StageFailed(
                spec.flow,
                spec.source_alias,
                Stage.CANARY_SEND.value,
                kind,
                message,
                self._clock(),
            )
        )
