"""ListOffsets requests in parts, each small enough to be cheap, and leader by leader.

librdkafka merges the answers of a call into the list of requested partitions by linear search, so
a call costs the square of its partitions. A part has one leader, so that it is one request.
Requests by leader keep one that is down from affecting the others.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Self, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined]  # re-exported without saying so

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.kafka_errors import ErrorKind, kind_of
from mm2slo_kafka.request_sizes import chunks

Leaders: TypeAlias = Mapping[str, Sequence[int]]
"""Broker ids by topic, in the order of its partitions."""
PART_SIZE = 200
_MAX_PARALLEL = 16

_AIM_SECONDS = 0.25
"""For all parts: more threads are needed only if the cluster is distant, and cost CPU."""
_MAX_REPEATED = 64
"""Requests to one leader per call that repeat refused ones in halves."""


class RequestPart(NamedTuple):
    """Partitions of one request, also as librdkafka takes them."""

    partitions: tuple[TopicPartition, ...]
    raw: list[RawPartition]

    @classmethod
    def of(cls, partitions: Iterable[TopicPartition], moment: int) -> Self:
        wanted = tuple(partitions)
        return cls(wanted, [RawPartition(topic, number, moment) for topic, number in wanted])

    def halves(self) -> tuple["RequestPart", "RequestPart"]:
        half = len(self.partitions) // 2
        return (
            RequestPart(self.partitions[:half], self.raw[:half]),
            RequestPart(self.partitions[half:], self.raw[half:]),
        )


class OffsetAnswer(NamedTuple):
    """Offsets and errors of a part; each partition is in exactly one of them."""

    offsets: dict[TopicPartition, int]
    errors: dict[TopicPartition, ErrorKind]


LeaderRequest: TypeAlias = Callable[
    [Sequence[RequestPart], int, float], Sequence[OffsetAnswer | KafkaException]
]
"""Requests parts of one leader: lowest valid offset, deadline (monotonic)."""


def read_by_leader(
    metadata: ClusterMetadata,
    wanted: Sequence[TopicPartition],
    moment: int,
    deadline: float,
    request: LeaderRequest,
) -> OffsetAnswer:
    """Offsets and errors of *wanted*; each leader gets a share of the time until *deadline*.

    Raises KafkaException if no leader answers.
    """
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    errors: dict[TopicPartition, ErrorKind] = {}
    for partition in wanted:
        leader = _leader(metadata, partition)
        if isinstance(leader, ErrorKind):
            errors[partition] = leader
        else:
            by_leader[leader].append(partition)
    offsets: dict[TopicPartition, int] = {}
    failures: list[KafkaException] = []
    for asked, its in enumerate(by_leader.values()):
        until = time.monotonic() + max(deadline - time.monotonic(), 0.1) / (len(by_leader) - asked)
        parts = [RequestPart.of(group, moment) for group in chunks(its, PART_SIZE)]
        for part, answer in _request_by_halves(parts, lowest_offset(moment), until, request):
            if isinstance(answer, KafkaException):
                failures.append(answer)
                errors.update(dict.fromkeys(part.partitions, kind_of(answer.args[0])))
            else:
                offsets.update(answer.offsets)
                errors.update(answer.errors)
    if failures and not offsets:
        raise failures[0]
    return OffsetAnswer(offsets, errors)


def _request_by_halves(
    parts: Sequence[RequestPart], lowest: int, deadline: float, request: LeaderRequest
) -> Iterator[tuple[RequestPart, OffsetAnswer | KafkaException]]:
    """Request offsets from one leader; if it refuses one partition, and so all, bisect them.

    A leader may refuse a topic that was just created. Results and failures together cover
    *parts*; the number of requests is bounded.
    """
    waiting, repeats = list(parts), _MAX_REPEATED
    while waiting:
        answers = zip(waiting, request(waiting, lowest, deadline), strict=True)
        waiting = []
        for part, answer in answers:
            refused = isinstance(answer, KafkaException) and is_refused(answer)
            in_time = time.monotonic() < deadline
            if refused and in_time and len(part.partitions) > 1 and repeats > 1:
                repeats -= 2
                waiting += part.halves()
            else:
                yield part, answer


def _leader(metadata: ClusterMetadata, partition: TopicPartition) -> int | ErrorKind:
    """The leader of *partition*, or the reason why it has none."""
    topic = metadata.topics.get(partition.topic)
    if topic is None:
        return ErrorKind.UNKNOWN_TOPIC
    if topic.error is not None:
        return kind_of(topic.error)
    found = topic.partitions.get(partition.partition)
    if found is None:
        return ErrorKind.UNKNOWN_TOPIC
    return found.leader if found.leader in metadata.brokers else ErrorKind.UNREACHABLE


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
    consumer: Consumer, parts: Sequence[RequestPart], lowest: int, deadline: float
) -> list[OffsetAnswer | KafkaException]:
    """The answer of each part, or its failure; slow ones are requested at the same time.

    Offsets below *lowest* are invalid. A part whose turn comes after *deadline* (monotonic) has
    timed out.
    """

    def request(part: RequestPart) -> OffsetAnswer | KafkaException:
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


def _request(consumer: Consumer, part: RequestPart, lowest: int, timeout: float) -> OffsetAnswer:
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
    return OffsetAnswer(offsets, errors)


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
