"""Consumer groups and what they committed."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions

from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.errors import KafkaProblem
    from mm2slo_kafka.handles import HandleFactory


class GroupListing(NamedTuple):
    """One consumer group. `state` is Kafka's, lower case: stable, empty, dead, unknown and so on.

    `type` is classic or consumer (KIP-848), or unknown on brokers that do not tell.
    """

    group: str
    state: str
    type: str
    is_simple: bool


class Committed(NamedTuple):
    """The offset that a group would read next, and the text it stored beside it."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class GroupsReading:
    """Groups of the cluster; `problems` names brokers whose groups are missing from it."""

    groups: tuple[GroupListing, ...]
    problems: tuple[KafkaProblem, ...]


GroupOffsets = dict[TopicPartition, Committed]


def list_groups(handles: HandleFactory, admin: AdminClient, timeout: float) -> GroupsReading:
    """All consumer groups. Raises KafkaProblem when no broker answers."""
    operation = "listing consumer groups"
    with handles.errors(operation, answered=True):
        try:
            result = admin.list_consumer_groups(request_timeout=timeout).result()
        finally:
            admin.poll(0)
        problems = tuple(handles.problem(error, operation) for error in result.errors or ())
        if problems and not result.valid:
            raise problems[0]
    return GroupsReading(
        tuple(
            GroupListing(
                found.group_id,
                found.state.name.lower() if found.state else "unknown",
                found.type.name.lower() if found.type else "unknown",
                found.is_simple_consumer_group,
            )
            for found in result.valid
        ),
        problems,
    )


def read_group_offsets(
    handles: HandleFactory,
    admin: AdminClient,
    groups: Iterable[str],
    *,
    max_in_flight: int,
    timeout: float,
) -> dict[str, GroupOffsets | KafkaProblem]:
    """Committed offsets of each group, or why not; OffsetFetch takes one group per request.

    *timeout* bounds the whole call: groups not reached by then carry a timeout problem.
    """
    waiting = iter(dict.fromkeys(groups))
    deadline = time.monotonic() + timeout
    in_flight: dict[Future[ConsumerGroupTopicPartitions], str] = {}
    results: dict[str, GroupOffsets | KafkaProblem] = {}
    while True:
        while len(in_flight) < max_in_flight and (group := next(waiting, None)) is not None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                results[group] = handles.problem(
                    TimeoutError("not reached within the timeout"), _operation(group)
                )
                continue
            in_flight[_begin(admin, group, remaining)] = group
        if not in_flight:
            admin.poll(0)
            return results
        for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
            group = in_flight.pop(future)
            results[group] = _settle(handles, admin, future, group)


def _operation(group: str) -> str:
    return f"reading committed offsets of group {group!r}"


def _begin(admin: AdminClient, group: str, timeout: float) -> Future[ConsumerGroupTopicPartitions]:
    request = ConsumerGroupTopicPartitions(group)
    return admin.list_consumer_group_offsets([request], request_timeout=timeout)[group]


def _settle(
    handles: HandleFactory,
    admin: AdminClient,
    future: Future[ConsumerGroupTopicPartitions],
    group: str,
) -> GroupOffsets | KafkaProblem:
    failure = future.exception()
    if failure is not None:
        admin.poll(0)
        return handles.problem(failure, _operation(group))
    handles.causes.forget()
    return {
        TopicPartition(found.topic, found.partition): Committed(found.offset, found.metadata or "")
        for found in future.result().topic_partitions or ()
        if found.error is None and found.offset >= 0
    }
