"""Appends one record to thousands of partitions in one Produce request.

librdkafka sends one request per partition; ten thousand requests would take longer than a cycle.
Formats: Kafka's protocol guide, Produce version 3 and record batch version 2 (KIP-98).
"""

import socket
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Self

from confluent_kafka import KafkaError, Message, Producer
from tsdb import crc32c


def append(properties: Mapping[str, str], partitions: Iterable[tuple[str, int]]) -> None:
    """Append one record to each of *partitions*, which are all on one broker."""
    host, port = properties["bootstrap.servers"].rsplit(":", 1)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(partition)
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(_request(topics, _batch(b"record", int(time.time() * 1000))))
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        _check(stream.read(size), sum(map(len, topics.values())))


def _request(topics: Mapping[str, list[int]], batch: bytes) -> bytes:
    # Header 1: Produce (0), version 3, correlation 1; then no transaction, acks 1, timeout 120 s.
    parts = [struct.pack(">hhi", 0, 3, 1), _text("bench"), struct.pack(">hhi", -1, 1, 120_000)]
    parts.append(struct.pack(">i", len(topics)))
    for topic, numbers in topics.items():
        parts += [_text(topic), struct.pack(">i", len(numbers))]
        parts += [struct.pack(">ii", number, len(batch)) + batch for number in numbers]
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def _check(answer: bytes, expected: int) -> None:
    at, found = 8, 0
    (topics,) = struct.unpack_from(">i", answer, 4)
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        name = answer[at + 2 : at + 2 + length].decode()
        at += 2 + length
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(count):
            partition, error = struct.unpack_from(">ih", answer, at)
            if error:
                raise RuntimeError(f"{name}-{partition} refused a record: Kafka error {error}")
            at += 22
            found += 1
    if found != expected:
        raise RuntimeError(f"{found} partitions answered, expected {expected}")


def _batch(value: bytes, timestamp_ms: int) -> bytes:
    record = b"\0\0\0\x01" + _varint(len(value)) + value + b"\0"
    record = _varint(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    rest = struct.pack(">ib", -1, 2) + crc32c(checked) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def _varint(number: int) -> bytes:
    zigzag = number << 1
    assert 0 <= zigzag < 128
    return bytes([zigzag])


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


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
