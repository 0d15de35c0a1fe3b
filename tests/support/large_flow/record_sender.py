"""Sends many records to many partitions and fails when one is refused."""

from collections.abc import Mapping
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

_ANY = -1
_NOW = 0  # librdkafka: the time of the call


class RecordSender:
    """A producer whose records are all acknowledged when the context ends or `flush` returns."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        settings = {
            "log_level": 2,
            "linger.ms": 50,
            "queue.buffering.max.messages": 2_000_000,
            "compression.type": "lz4",
        }
        self._producer = Producer({**settings, **properties})
        self._refused: list[str] = []

    def send(
        self,
        topic: str,
        value: bytes,
        partition: int = _ANY,
        *,
        key: bytes | None = None,
        timestamp_ms: int = _NOW,
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=self._delivered,
                    timestamp=timestamp_ms,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        left = self._producer.flush(120)
        if left or self._refused:
            raise RuntimeError(f"{left} records not acknowledged, refused: {self._refused[:3]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        if kind is None:
            self.flush()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._refused.append(str(error))
