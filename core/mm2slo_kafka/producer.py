"""Sends single records without waiting, and tells how each one fared."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException

from mm2slo_kafka.errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.handles import HandleFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import Message, Producer

_SETTINGS: dict[str, str] = {
    "acks": "all",
    "enable.idempotence": "true",
    # A canary measures latency: it must not wait for company.
    "linger.ms": "0",
    "queue.buffering.max.messages": "10000",
    # Creating topics is `ClusterClient.create_topic`'s, with settings that are chosen.
    "allow.auto.create.topics": "false",
    # An unknown topic is told when the delivery times out, which is soon enough.
    "topic.metadata.propagation.max.ms": "5000",
}
_SLICE_SECONDS = 0.2


class Delivered(NamedTuple):
    """The cluster has the record, on all in-sync replicas. `timestamp_ms` is the stored one."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


DeliveryResult = Delivered | KafkaOperationError


class RecordProducer:
    """An idempotent producer of one cluster.

    `send` and `poll` may be called from several threads; results are told inside `poll` and
    `flush`, on the thread that calls them. Constructing never blocks or raises for a cluster
    that is away; it raises KafkaOperationError for properties that cannot work.
    """

    def __init__(
        self,
        alias: str,
        properties: Mapping[str, str],
        *,
        delivery_timeout_seconds: float = 30.0,
        handles: HandleFactory | None = None,
        batching: Mapping[str, str] | None = None,
    ) -> None:
        """*batching* are librdkafka properties for producers that may trade latency for size."""
        self.alias = alias
        self._handles = handles or HandleFactory(alias, properties)
        self._settings = {
            **_SETTINGS,
            **(batching or {}),
            "delivery.timeout.ms": str(int(delivery_timeout_seconds * 1000)),
        }
        self._lock = threading.Lock()
        self._fatal: KafkaError | None = None
        self._purged: list[tuple[Callable[[DeliveryResult], None], str, KafkaError]] = []
        self._producer: Producer = self._make()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Records whose result has not been told yet."""
        return len(self._producer)

    def __bool__(self) -> bool:
        return True  # a producer with nothing under way is a producer

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
        """Hand over one record and return; exactly one result follows, a refusal at once.

        *partition* None leaves the choice to the hash of the key, *timestamp_ms* None means now.
        """
        operation = f"writing to topic {topic!r}"

        def settle(error: KafkaError | None, message: Message) -> None:
            if error is not None and error.code() in _PURGED:
                self._purged.append((on_delivery, operation, error))
                return
            if error is not None:
                on_delivery(self._handles.problem(error, operation))
                return
            self._handles.causes.forget()
            on_delivery(_delivered(topic, message))

        try:
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
                    cluster=self.alias,
                    operation=operation,
                    detail="too many records wait to be taken by the cluster",
                    code="_QUEUE_FULL",
                )
            )
        except KafkaOperationError as problem:
            on_delivery(problem)

    def poll(self, timeout: float = 0.0) -> None:
        """Tell results that are there, waiting up to *timeout* seconds for the first."""
        self._serve(timeout)
        if self._purged:
            # librdkafka fails the records first and then tells the fatal error behind it.
            self._serve(0.0)
            self._tell_purged()

    def flush(self, timeout: float) -> int:
        """Wait for all results up to *timeout* seconds; returns how many are still missing."""
        deadline = time.monotonic() + timeout
        while len(self) and (remaining := deadline - time.monotonic()) > 0:
            self.poll(min(remaining, _SLICE_SECONDS))
        return len(self)

    def close(self, timeout: float = 5.0) -> None:
        """Wait for results up to *timeout* seconds; what is left then is told as failed."""
        if self.flush(timeout):
            self._producer.purge()
            self.poll(1.0)

    def _serve(self, timeout: float) -> None:
        try:
            self._producer.poll(timeout)
        except KafkaException as failure:
            # Raised for fatal errors only: they end an idempotent producer and all its records.
            self._fatal = failure.args[0]
            self._producer.purge()

    def _tell_purged(self) -> None:
        purged, self._purged = self._purged, []
        for on_delivery, operation, error in purged:
            on_delivery(self._handles.problem(self._fatal or error, operation))

    def _usable(self) -> Producer:
        """The producer; a new one after a fatal error."""
        with self._lock:
            if self._fatal is not None:
                self._fatal = None
                self._producer = self._make()
            return self._producer

    def _make(self) -> Producer:
        return self._handles.producer(self._settings)


# The client's only names for them.
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL})


def _delivered(topic: str, message: Message) -> Delivered:
    _kind, timestamp_ms = message.timestamp()
    # Present in every delivery report without an error.
    return Delivered(topic, message.partition() or 0, message.offset() or 0, timestamp_ms)
