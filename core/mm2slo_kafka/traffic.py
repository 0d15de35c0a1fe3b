"""Generates records and group commits for the lab, tests and demonstrations."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from confluent_kafka import Message

_TIMEOUT = 60.0
_QUEUE = 100_000
_REPORT = 100
_ANY_PARTITION = -1  # librdkafka's RD_KAFKA_PARTITION_UA: the partitioner decides
_NOW = 0  # librdkafka: a timestamp of 0 is the time of the call


@dataclass(frozen=True, slots=True)
class Load:
    """What to produce: *count* records, with keys and values derived from the record number.

    Record n has the key `k<n>`; with *keys*, these are used in rotation. *partition* None means
    by key. *timestamp* (epoch seconds) None means now; *rate* (records per second) None means
    unlimited.
    """

    count: int
    keys: tuple[str, ...] = ()
    value_size: int = 100
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: float | None = None
    first: int = 0
    rate: float | None = None

    def key(self, number: int) -> bytes:
        text = self.keys[number % len(self.keys)] if self.keys else f"k{number}"
        return text.encode()

    def value(self, number: int) -> bytes:
        """The record number, padded to `value_size` bytes."""
        return f"v{number}-".encode().ljust(self.value_size, b".")


@dataclass(slots=True)
class Delivered:
    """Delivery results of one call: the count and the next offset of each partition."""

    count: int = 0
    next_offsets: dict[int, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def record(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.errors.append(f"partition {partition}: {error}")
            return
        self.count += 1
        self.next_offsets[partition] = max(self.next_offsets.get(partition, 0), offset + 1)


def produce(
    properties: Mapping[str, str],
    topic: str,
    load: Load,
    progress: Callable[[int], None] | None = None,
) -> Delivered:
    """Produce *load* and wait until every record is acknowledged.

    *progress* is called periodically with the number of records sent. Raises RuntimeError with
    the first failure when a record was not accepted.
    """
    producer = Producer({**PRODUCER_SETTINGS, **properties})
    delivered = Delivered()
    send_load(producer, topic, load, delivered, progress)
    flush_load(producer, topic, delivered)
    return delivered


def consume(
    properties: Mapping[str, str],
    topics: Iterable[str],
    count: int,
    *,
    timeout: float = _TIMEOUT,
    isolation: str = "read_uncommitted",
    until_end: bool = False,
) -> list[Message]:
    """Read *count* records of *topics* from their start, without group membership.

    With *until_end*, fewer are returned when every partition has been read to its end. Raises
    TimeoutError when fewer arrive within *timeout* seconds.
    """
    settings = {
        **CONSUMER_SETTINGS,
        **properties,
        "group.id": "mm2slo-traffic",
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
        "enable.partition.eof": until_end,
    }
    consumer = Consumer(settings)
    try:
        wanted = list(topics)
        partitions = [
            TopicPartition(topic, partition, 0)
            for topic in wanted
            for partition in consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        ]
        consumer.assign(partitions)
        return read_records(consumer, count, wanted, timeout, ends=len(partitions))
    finally:
        consumer.close()


def commit(
    properties: Mapping[str, str], topic: str, group: str, offsets: Mapping[int, int]
) -> None:
    """Commit *offsets* for *group* without reading; the group must have no members."""
    consumer = Consumer({**CONSUMER_SETTINGS, **properties, "group.id": group})
    try:
        consumer.commit(offsets=_positions(topic, offsets), asynchronous=False)
    finally:
        consumer.close()


# Refused records must be reported, and retries must not duplicate records.
PRODUCER_SETTINGS = {
    "log_level": 2,
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": _QUEUE,
    "delivery.timeout.ms": 30_000,
    "message.max.bytes": 10_000_000,
}
CONSUMER_SETTINGS = {"log_level": 2, "enable.auto.commit": False, "fetch.wait.max.ms": 50}


def _positions(topic: str, offsets: Mapping[int, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]


def send_load(
    producer: Producer,
    topic: str,
    load: Load,
    delivered: Delivered,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Queue the records of *load*; their results are added to *delivered*."""
    partition = _ANY_PARTITION if load.partition is None else load.partition
    timestamp = _NOW if load.timestamp is None else int(load.timestamp * 1000)
    headers: list[tuple[str, str | bytes | None]] = [*load.headers]
    start = time.monotonic()
    for sent in range(load.count):
        number = load.first + sent
        if load.rate is not None:
            # Sending happens in the background; this serves delivery reports.
            while (ahead := sent / load.rate - (time.monotonic() - start)) > 0:
                producer.poll(ahead)
        while True:
            try:
                producer.produce(
                    topic,
                    value=load.value(number),
                    key=load.key(number),
                    headers=headers,
                    on_delivery=delivered.record,
                    partition=partition,
                    timestamp=timestamp,
                )
                break
            except BufferError:
                producer.poll(0.1)
        if sent % _REPORT == 0:
            producer.poll(0)
            if progress is not None:
                progress(sent)


def flush_load(producer: Producer, topic: str, delivered: Delivered) -> None:
    """Wait until every record is acknowledged. Raises RuntimeError if one is not accepted."""
    left = producer.flush(_TIMEOUT)
    if left or delivered.errors:
        first = delivered.errors[0] if delivered.errors else "no response"
        raise RuntimeError(
            f"{left + len(delivered.errors)} records for {topic} were not accepted: {first}"
        )


def read_records(
    consumer: Consumer, count: int, topics: list[str], timeout: float, *, ends: int = 1
) -> list[Message]:
    """The next *count* records; fewer if *ends* partitions reach their end first."""
    found: list[Message] = []
    end = time.monotonic() + timeout
    while len(found) < count and ends > 0:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"{len(found)} of {count} records of {', '.join(topics)} in {timeout:.0f} s"
            )
        for message in consumer.consume(count - len(found), timeout=min(left, 0.5)):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends -= 1
            else:
                raise KafkaException(error)
    return found
