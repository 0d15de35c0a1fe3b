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
from mm2slo_exporter.canary.carrier_topic import CarrierTopic, is_recreated
from mm2slo_exporter.canary.ledger_state import LedgerState, LedgerStates
from mm2slo_exporter.collection_health import Stage
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.record_producer import Delivered, RecordProducer

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_exporter.canary.carrier_topic import SourceTopics
    from mm2slo_exporter.canary.event_outbox import Outbox
    from mm2slo_kafka.record_producer import DeliveryResult
    from mm2slo_kafka.topic_metadata import TopicIdentity

_RESTORE_TIMEOUT_SECONDS = 30.0
_TOPIC_RETRY_SECONDS = 5.0
_REPORT_SECONDS = 1.0
_DELIVERY_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.2


class CanaryProducer(Protocol):
    """The part of a producer that sends canaries and reports delivery results."""

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

    def poll(self, timeout: float) -> None:
        """Report results, waiting up to *timeout* seconds for the first."""

    def close(self) -> None:
        """Wait briefly for results; report the rest as failed."""


class Sender:
    """Sends one flow's canaries.

    Sequences start at the start time in milliseconds, so that they ascend over restarts without
    stored state, as long as fewer than 1,000 canaries are sent per second.
    """

    def __init__(
        self,
        spec: CanarySpec,
        source: SourceTopics,
        outbox: Outbox,
        ledger_states: LedgerStates,
        instance: Callable[[], str | None],
        *,
        copy_partitions: Callable[[], int] = lambda: 0,
        producer: Callable[[], CanaryProducer] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*instance*: the name of this replica, None while it has none.

        *copy_partitions*: how many partitions the copy has, 0 if it is not known.
        """
        self._spec = spec
        self._instance = instance
        self._named: str | None = None
        self._copy_partitions = copy_partitions
        self._carrier = CarrierTopic(spec, source, clock)
        self._outbox = outbox
        self._ledger_states = ledger_states
        self._make_producer = producer or self._kafka_producer
        self._clock = clock
        self._sequence = int(clock() * 1000)
        self._reported_at = 0.0

    def run(self, restored: threading.Event, stopping: threading.Event) -> None:
        """Send until *stopping* is set; starts when *restored* is set, or after 30 s."""
        if self._spec.carrier == "off":
            return
        restored.wait(_RESTORE_TIMEOUT_SECONDS)
        topic = self._make_topic(stopping)
        if topic is None:
            return
        producer = self._make_producer()
        due = self._clock()
        try:
            while not stopping.is_set():
                if (changed := self._changed_topic(topic, stopping)) is not None:
                    # A producer learns of new partitions only minutes later.
                    producer.close()
                    producer = self._make_producer()
                    if is_recreated(topic, changed):
                        self._outbox.put(SourceTopicRecreated(self._spec.flow, self._clock()))
                    topic = changed
                self._send(producer, self._partition(topic), due)
                self._sequence += 1
                due += self._spec.interval_seconds
                # Canaries that were due during a pause of the machine are not sent.
                due = max(due, self._clock() - self._spec.interval_seconds)
                while not stopping.is_set() and (left := due - self._clock()) > 0:
                    producer.poll(min(left, _POLL_SECONDS))
            self._send_final_canary(producer, self._partition(topic))
        finally:
            producer.close()

    def _partition(self, topic: TopicIdentity) -> int:
        """The partition of the next canary.

        New partitions are used once MirrorMaker 2 has added them to the copy, which takes until
        it refreshes its topics.
        """
        return self._sequence % (min(topic.partitions, self._copy_partitions()) or topic.partitions)

    def _kafka_producer(self) -> CanaryProducer:
        return RecordProducer(
            HandleFactory(self._spec.source_alias, self._spec.source_client),
            delivery_timeout_seconds=_DELIVERY_TIMEOUT_SECONDS,
        )

    def _make_topic(self, stopping: threading.Event) -> TopicIdentity | None:
        """Create the carrier topic if needed; None when stopped."""
        while not stopping.is_set():
            try:
                return self._carrier.ensure(stopping)
            except KafkaOperationError as error:
                self._report_failure(str(error.kind), str(error))
            self._fail_canaries_until(self._clock() + _TOPIC_RETRY_SECONDS, stopping)
        return None

    def _changed_topic(
        self, known: TopicIdentity, stopping: threading.Event
    ) -> TopicIdentity | None:
        """The carrier topic after a change; None without one, or when stopped."""
        try:
            found = self._carrier.refreshed(known)
        except KafkaOperationError as error:
            self._report_failure(str(error.kind), str(error))
            return None
        if found == known:
            return None
        if found is None:
            # Whoever deleted it may create it again, with other settings than ours.
            self._fail_canaries_until(self._clock() + _TOPIC_RETRY_SECONDS, stopping)
            found = self._make_topic(stopping)
        return found

    def _fail_canaries_until(self, moment: float, stopping: threading.Event) -> None:
        """Report canaries as failed while the carrier topic does not exist."""
        while not stopping.is_set() and (now := self._clock()) < moment:
            self._outbox.put(Scheduled(self._spec.flow, self._sequence, 0, now))
            self._outbox.put(ProduceFailed(self._spec.flow, self._sequence, "no_topic", now))
            self._sequence += 1
            stopping.wait(self._spec.interval_seconds)

    def _send(self, producer: CanaryProducer, partition: int, due: float) -> None:
        sequence, sent_at, flow = self._sequence, self._clock(), self._spec.flow
        name = self._instance()
        if name is not None and name != self._named:
            self._named = name
            self._outbox.put(InstanceNamed(flow, name))
        self._outbox.put(Scheduled(flow, sequence, partition, max(due, sent_at)))
        if name is None:
            self._outbox.put(ProduceFailed(flow, sequence, "no_instance", sent_at))
            return

        def delivered(result: DeliveryResult) -> None:
            self._delivered(sequence, partition, result)

        self._produce(producer, partition, sent_at, delivered)

    def _send_final_canary(self, producer: CanaryProducer, partition: int) -> None:
        """Send a canary that this process does not count.

        It carries the final ledger state: without it, the next process would count the last
        arrivals again.
        """
        if self._named is not None:
            self._produce(producer, partition, self._clock(), lambda _result: None)

    def _produce(
        self,
        producer: CanaryProducer,
        partition: int,
        sent_at: float,
        on_delivery: Callable[[DeliveryResult], None],
    ) -> None:
        spec = self._spec
        ledger_state = self._ledger_states.get(spec.flow, LedgerState())
        canary = CanaryRecord(
            instance=self._named or "",
            flow=spec.flow,
            sequence=self._sequence,
            sent_ms=int(sent_at * 1000),
            partition=partition,
            floor=ledger_state.floor,
            newest_arrived=ledger_state.newest_arrived,
        )
        key, value = (
            canary.own() if spec.carrier == "topic" else canary.heartbeat(spec.source_alias)
        )
        producer.send(
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
