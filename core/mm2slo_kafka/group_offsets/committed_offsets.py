"""Reads committed offsets of many groups with the admin client."""

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

    from mm2slo_kafka.client_handles import HandleFactory
    from mm2slo_kafka.kafka_errors import KafkaOperationError


class Committed(NamedTuple):
    """A committed offset and its metadata."""

    offset: int
    metadata: str


GroupOffsets = dict[TopicPartition, Committed]


def describe_operation(group: str) -> str:
    """The operation, for error messages."""
    return f"reading committed offsets of group {group!r}"


def read_group_offsets(
    handles: HandleFactory,
    admin: AdminClient,
    groups: Iterable[str],
    *,
    max_in_flight: int,
    timeout: float,
) -> dict[str, GroupOffsets | KafkaOperationError]:
    """Committed offsets, or the error, of each group, with one OffsetFetch per group.

    *timeout* bounds the whole call: groups not requested by then get a timeout error.
    """
    remaining_groups = iter(dict.fromkeys(groups))
    deadline = time.monotonic() + timeout
    in_flight: dict[Future[ConsumerGroupTopicPartitions], str] = {}
    results: dict[str, GroupOffsets | KafkaOperationError] = {}
    while True:
        while (
            len(in_flight) < max_in_flight and (group := next(remaining_groups, None)) is not None
        ):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                results[group] = handles.problem(
                    TimeoutError("not requested within the timeout"), describe_operation(group)
                )
                continue
            in_flight[_start_request(admin, group, remaining)] = group
        if not in_flight:
            admin.poll(0)
            return results
        for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
            group = in_flight.pop(future)
            results[group] = _settle(handles, admin, future, group)


def _start_request(
    admin: AdminClient, group: str, timeout: float
) -> Future[ConsumerGroupTopicPartitions]:
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
        return handles.problem(failure, describe_operation(group))
    handles.last_error.clear()
    return {
        TopicPartition(found.topic, found.partition): Committed(found.offset, found.metadata or "")
        for found in future.result().topic_partitions or ()
        if found.error is None and found.offset >= 0
    }
