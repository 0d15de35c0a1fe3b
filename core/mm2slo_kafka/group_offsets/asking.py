"""Committed offsets of many groups, by the admin client."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, wait
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions

from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.errors import KafkaOperationError
    from mm2slo_kafka.handles import HandleFactory


class Committed(NamedTuple):
    """The offset that a group would read next, and the text it stored beside it."""

    offset: int
    metadata: str


GroupOffsets = dict[TopicPartition, Committed]


def operation_of(group: str) -> str:
    """What is being done, as a problem says it."""
    return f"reading committed offsets of group {group!r}"


def read_group_offsets(
    handles: HandleFactory,
    admin: AdminClient,
    groups: Iterable[str],
    *,
    max_in_flight: int,
    timeout: float,
) -> dict[str, GroupOffsets | KafkaOperationError]:
    """Committed offsets of each group, or why not; OffsetFetch takes one group per request.

    *timeout* bounds the whole call: groups not reached by then carry a timeout problem.
    """
    waiting = iter(dict.fromkeys(groups))
    deadline = time.monotonic() + timeout
    in_flight: dict[Future[ConsumerGroupTopicPartitions], str] = {}
    results: dict[str, GroupOffsets | KafkaOperationError] = {}
    while True:
        while len(in_flight) < max_in_flight and (group := next(waiting, None)) is not None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                results[group] = handles.problem(
                    TimeoutError("not reached within the timeout"), operation_of(group)
                )
                continue
            in_flight[_begin(admin, group, remaining)] = group
        if not in_flight:
            admin.poll(0)
            return results
        for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
            group = in_flight.pop(future)
            results[group] = _settle(handles, admin, future, group)


def _begin(admin: AdminClient, group: str, timeout: float) -> Future[ConsumerGroupTopicPartitions]:
    request = ConsumerGroupTopicPartitions(group)
    return admin.list_consumer_group_offsets([request], request_timeout=timeout)[group]


def _settle(
    handles: HandleFactory,
    admin: AdminClient,
    future: Future[ConsumerGroupTopicPartitions],
    group: str,
) -> GroupOffsets | KafkaOperationError:
    failure = future.exception()
    if failure is not None:
        admin.poll(0)
        return handles.problem(failure, operation_of(group))
    handles.causes.forget()
    return {
        TopicPartition(found.topic, found.partition): Committed(found.offset, found.metadata or "")
        for found in future.result().topic_partitions or ()
        if found.error is None and found.offset >= 0
    }
