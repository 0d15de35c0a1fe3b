"""ListOffsets requests in parts, each small enough to be cheap.

librdkafka merges the answers of a call into the list of requested partitions by linear search, so
a call costs the square of its partitions. A part has one leader, so that it is one request.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_kafka.chunks import chunks
from mm2slo_kafka.kafka_errors import ErrorKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from confluent_kafka import Consumer

    from mm2slo_core.topology import TopicPartition

Leaders: TypeAlias = "Mapping[str, Sequence[int]]"
"""Broker ids by topic, in the order of its partitions."""

PART_SIZE = 200
_MAX_PARALLEL = 16
_AIM_SECONDS = 0.25
"""For all parts: more threads are needed only if the cluster is distant, and cost CPU."""


class Part(NamedTuple):
    """Partitions of one request, also as librdkafka takes them."""

    partitions: tuple[TopicPartition, ...]
    raw: list[RawPartition]

    @classmethod
    def of(cls, partitions: Iterable[TopicPartition], moment: int) -> Part:
        wanted = tuple(partitions)
        return cls(wanted, [RawPartition(topic, number, moment) for topic, number in wanted])

    def halves(self) -> tuple[Part, Part]:
        half = len(self.partitions) // 2
        return (
            Part(self.partitions[:half], self.raw[:half]),
            Part(self.partitions[half:], self.raw[half:]),
        )


class Answer(NamedTuple):
    """Offsets and errors of a part; each partition is in exactly one of them."""

    offsets: dict[TopicPartition, int]
    errors: dict[TopicPartition, ErrorKind]


def split_by_leader(
    partitions: Sequence[TopicPartition], leaders: Leaders, size: int
) -> list[Sequence[TopicPartition]]:
    """*partitions*, each once, in groups of at most *size* with one leader.

    One group if all fit: librdkafka asks all leaders of a call at the same time. Leaders may be
    outdated or unknown: a group then takes several requests.
    """
    if len(partitions) <= size:
        return [partitions]
    by_leader: defaultdict[int | None, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        known = leaders.get(partition.topic, ())
        number = partition.partition
        by_leader[known[number] if number < len(known) else None].append(partition)
    return [group for found in by_leader.values() for group in chunks(found, size)]


def request_parts(
    consumer: Consumer, parts: Sequence[Part], lowest: int, deadline: float
) -> list[Answer | KafkaException]:
    """The answer of each part, or its failure; slow ones are requested at the same time.

    Offsets below *lowest* are invalid. A part whose turn comes after *deadline* (monotonic) has
    timed out.
    """

    def request(part: Part) -> Answer | KafkaException:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return KafkaException(KafkaError(KafkaError._TIMED_OUT))
        try:
            return _request(consumer, part, lowest, remaining)
        except KafkaException as failure:
            return failure

    started = time.monotonic()
    first = [request(each) for each in parts[:1]]
    threads = math.ceil((time.monotonic() - started) * (len(parts) - 1) / _AIM_SECONDS)
    if threads <= 1:
        return [*first, *map(request, parts[1:])]
    with ThreadPoolExecutor(min(threads, _MAX_PARALLEL), thread_name_prefix="offsets") as workers:
        return [*first, *workers.map(request, parts[1:])]


def _request(consumer: Consumer, part: Part, lowest: int, timeout: float) -> Answer:
    results = consumer.offsets_for_times(part.raw, timeout=timeout)
    wanted = part.partitions
    if results != part.raw:  # by topic and partition
        raise RuntimeError("librdkafka returned other partitions than requested")
    offsets = {
        partition: offset
        for partition, found in zip(wanted, results, strict=True)
        if (offset := found.offset) >= lowest and found.error is None
    }
    errors = {}
    if len(offsets) < len(wanted):
        errors = {
            partition: _kind(found.error)
            for partition, found in zip(wanted, results, strict=True)
            if partition not in offsets
        }
    return Answer(offsets, errors)


def lowest_offset(moment: int) -> int:
    """The lowest valid result: -1 means that no record is at or after a time (KIP-79)."""
    return 0 if moment < 0 else -1


def is_refused(failure: KafkaException) -> bool:
    """Whether a part failed because of one of its partitions, not because of its brokers.

    The error of any partition fails the whole part. Without a known leader for any, librdkafka
    sends no request.
    """
    error = failure.args[0]
    return error.code() > 0 or kind_of(error) is ErrorKind.UNKNOWN_TOPIC


def _kind(error: KafkaError | None) -> ErrorKind:
    return ErrorKind.TIMEOUT if error is None else kind_of(error)
