"""Sends single records without blocking, and reports each delivery result."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

_SETTINGS: dict[str, str] = {
    "acks": "all",
    "enable.idempotence": "true",
    # Canaries measure latency, so they are never batched.
    "linger.ms": "0",
    "queue.buffering.max.messages": "10000",
    # Topics are created by `ClusterClient.create_topic`, with explicit settings.
    "allow.auto.create.topics": "false",
    # An unknown topic is reported when the delivery times out, which is early enough.
    "topic.metadata.propagation.max.ms": "5000",
}
_SLICE_SECONDS = 0.2


class Delivered(NamedTuple):
    """The record is on all in-sync replicas. `timestamp_ms` is the stored timestamp."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


DeliveryResult = Delivered | KafkaOperationError


class RecordProducer:
    """An idempotent producer of one cluster.

    `send` and `poll` may be called from several threads; results are reported by `poll` and
    `flush`, in the calling thread. The constructor never blocks and does not raise for an
    unreachable cluster; it raises KafkaOperationError for invalid properties.
    """

    def __init__(
        self,
        handles: HandleFactory,
        *,
        delivery_timeout_seconds: float = 30.0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """*settings* are librdkafka properties, as those that trade latency for larger batches."""
        self._handles = handles
        self._settings = {
            **_SETTINGS,
            **(settings or {}),
            "delivery.timeout.ms": str(int(delivery_timeout_seconds * 1000)),
        }
        self._lock = threading.Lock()
        self._fatal: KafkaError | None = None
        self._purged: list[tuple[Callable[[DeliveryResult], None], str, KafkaError]] = []
        # A client logs in when it is made.
        self._producer: Producer | None = self._make() if handles.logins.is_open else None
        self._replaced: list[Producer] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._handles.alias!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Records without a reported result."""
        return sum(map(len, self._producers())) + len(self._purged)

    def __bool__(self) -> bool:
        return True  # else a producer without pending records would be false

    def send(
        self,
        topic: str,
        *,
        partition: int | None = None,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp_ms: int | None = None,
        on_delivery: Callable[[DeliveryResult], None],
    ) -> None:
        """Queue one record and return; exactly one result is reported, most refusals at once.

        *partition* None means by the hash of the key, *timestamp_ms* None means now.
        """
        operation = f"writing to topic {topic!r}"

        def settle(error: KafkaError | None, message: Message) -> None:
            if error is not None and error.code() in _PURGED:
                self._purged.append((on_delivery, operation, error))
                return
            if error is not None:
                on_delivery(self._handles.problem(error, operation))
                return
            self._handles.last_error.clear()
            on_delivery(_delivered(topic, message))

        try:
            self._handles.check_login(operation)
            with self._handles.errors(operation):
                self._usable().produce(
                    topic,
                    value,
                    key,
                    partition=-1 if partition is None else partition,
                    on_delivery=settle,
                    timestamp=timestamp_ms or 0,
                    headers=list(headers) or None,
                )
        except BufferError:
            on_delivery(
                KafkaOperationError(
                    ErrorKind.TIMEOUT,
                    cluster=self._handles.alias,
                    operation=operation,
                    detail="the producer queue is full",
                    code="_QUEUE_FULL",
                )
            )
        except KafkaOperationError as problem:
            if problem.code == _FATAL.name():
                # The next poll raises its cause.
                self._purged.append((on_delivery, operation, _FATAL))
            else:
                on_delivery(problem)

    def poll(self, timeout: float = 0.0) -> None:
        """Report available results, waiting up to *timeout* seconds for the first."""
        refusal = self._handles.logins.refusal()
        if refusal is not None:
            self._drop(refusal)
            time.sleep(timeout)
        self._serve(timeout)
        if self._purged:
            # librdkafka fails the records first and then reports the fatal error that caused it.
            self._serve(0.0)
            self._report_purged()

    def renew(self) -> None:
        """Send with a new client, which knows all partitions; the old one delivers what it has.

        A client notices new partitions only minutes later.
        """
        with self._lock:
            self._replaced, self._producer = self._producers(), None

    def flush(self, timeout: float) -> int:
        """Wait up to *timeout* seconds for all results; returns how many are missing."""
        deadline = time.monotonic() + timeout
        while len(self) and (remaining := deadline - time.monotonic()) > 0:
            self.poll(min(remaining, _SLICE_SECONDS))
        return len(self)

    def close(self, timeout: float = 5.0) -> None:
        """Wait up to *timeout* seconds for results; the rest are reported as failed."""
        if self.flush(timeout):
            for each in self._producers():
                each.purge()
            self.poll(1.0)

    def _serve(self, timeout: float) -> None:
        for replaced in self._replaced:
            self._serve_one(replaced, 0.0)
        if self._replaced:
            with self._lock:
                self._replaced = [each for each in self._replaced if len(each)]
        if self._producer is not None:
            self._serve_one(self._producer, timeout)

    def _serve_one(self, producer: Producer, timeout: float) -> None:
        try:
            producer.poll(timeout)
        except KafkaException as failure:
            # Raised for fatal errors only: an idempotent producer and its records then fail.
            self._fatal = failure.args[0]
            producer.purge()

    def _report_purged(self) -> None:
        purged, self._purged = self._purged, []
        for on_delivery, operation, error in purged:
            on_delivery(self._handles.problem(self._fatal or error, operation))

    def _usable(self) -> Producer:
        """The producer; a new one after a fatal error."""
        with self._lock:
            if self._fatal is not None or self._producer is None:
                self._fatal = None
                self._producer = self._make()
            return self._producer

    def _producers(self) -> list[Producer]:
        return [*([] if self._producer is None else [self._producer]), *self._replaced]

    def _drop(self, refusal: KafkaError) -> None:
        """Fail all records, and close the clients: they would log in again."""
        for each in self._producers():
            each.purge()
            self._serve_one(each, 1.0 if len(each) else 0.0)
        with self._lock:
            self._fatal, self._producer, self._replaced = refusal, None, []

    def _make(self) -> Producer:
        return self._handles.producer(self._settings)


_FATAL = KafkaError(KafkaError._FATAL)

# confluent-kafka has only these private names.
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL})


def _delivered(topic: str, message: Message) -> Delivered:
    _kind, timestamp_ms = message.timestamp()
    # Present in every delivery report without an error.
    return Delivered(topic, message.partition() or 0, message.offset() or 0, timestamp_ms)
