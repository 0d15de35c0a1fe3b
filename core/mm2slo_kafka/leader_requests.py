"""Offsets requested leader by leader, so that one that is down does not affect the others."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from confluent_kafka import KafkaException

from mm2slo_kafka.chunks import chunks
from mm2slo_kafka.kafka_errors import ErrorKind, kind_of
from mm2slo_kafka.offset_requests import PART_SIZE, Answer, Part, is_refused, lowest_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined]  # re-exported without saying so

    from mm2slo_core.topology import TopicPartition

_MAX_REPEATED = 64
"""Requests to one leader per call that repeat refused ones in halves."""
Request: TypeAlias = "Callable[[Sequence[Part], int, float], Sequence[Answer | KafkaException]]"
"""Requests parts of one leader: lowest valid offset, deadline (monotonic)."""


def read_by_leader(
    metadata: ClusterMetadata,
    wanted: Sequence[TopicPartition],
    moment: int,
    deadline: float,
    request: Request,
) -> Answer:
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
        parts = [Part.of(group, moment) for group in chunks(its, PART_SIZE)]
        for part, answer in _request_by_halves(parts, lowest_offset(moment), until, request):
            if isinstance(answer, KafkaException):
                failures.append(answer)
                errors.update(dict.fromkeys(part.partitions, kind_of(answer.args[0])))
            else:
                offsets.update(answer.offsets)
                errors.update(answer.errors)
    if failures and not offsets:
        raise failures[0]
    return Answer(offsets, errors)


def _request_by_halves(
    parts: Sequence[Part], lowest: int, deadline: float, request: Request
) -> Iterator[tuple[Part, Answer | KafkaException]]:
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
