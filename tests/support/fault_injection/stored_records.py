"""Records as stored on the brokers, byte by byte."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from confluent_kafka import KafkaError, Message, Producer
from topic_reader import read_topic

Headers = tuple[tuple[str, bytes | None], ...]

_TIMEOUT = 60.0
_PRODUCER = {
    "log_level": 2,
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "message.max.bytes": 2_000_000,
}


class Place(NamedTuple):
    """Partition and offset of a record."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a record. *timestamp* in epoch ms."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """A record on a broker."""

    place: Place
    content: Content


def write(
    properties: Mapping[str, str], topic: str, records: Iterable[tuple[int, Content]]
) -> list[Stored]:
    """Write *records* into the given partitions; returns them with their places, in order.

    Raises RuntimeError if a record was not accepted.
    """
    producer = Producer({**_PRODUCER, **properties})
    wanted = list(records)
    places: dict[int, Place] = {}
    errors: list[str] = []

    def reported(number: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is not None or partition is None or offset is None:
                errors.append(str(error))
            else:
                places[number] = Place(partition, offset)

        return note

    for number, (partition, content) in enumerate(wanted):
        producer.produce(
            topic,
            value=content.value,
            key=content.key,
            headers=[*content.headers],
            partition=partition,
            timestamp=content.timestamp,
            on_delivery=reported(number),
        )
        producer.poll(0)
    if producer.flush(_TIMEOUT) or errors:
        raise RuntimeError(
            f"{topic}: {len(places)} of {len(wanted)} records accepted: {errors[:1]}"
        )
    return [Stored(places[number], content) for number, (_partition, content) in enumerate(wanted)]


def read_all(
    properties: Mapping[str, str], topic: str, isolation: str = "read_uncommitted"
) -> list[Stored]:
    """All current records of *topic*."""
    return [_stored(message) for message in read_topic(properties, topic, isolation=isolation)]


def _stored(message: Message) -> Stored:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    _kind, timestamp = message.timestamp()
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    content = Content(timestamp, message.key(), message.value(), tuple(headers))
    return Stored(Place(partition, offset), content)
