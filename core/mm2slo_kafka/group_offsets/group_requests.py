"""Requests committed offsets or members of many groups with the admin client."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.group_offsets.request_window import RequestWindow
from mm2slo_kafka.group_offsets.worker_messages import GroupAnswer, GroupFailure, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.client_handles import HandleFactory
    from mm2slo_kafka.group_offsets.worker_messages import GroupsRequest


GroupOffsets = dict[TopicPartition, int]


class _Pending(NamedTuple):
    group: str
    requested_at: float
    started: float


def request_groups(
    handles: HandleFactory, admin: AdminClient, request: GroupsRequest
) -> Iterator[GroupAnswer]:
    """Answers in the order of their arrival; groups not requested in time have none."""
    remaining = list(reversed(request.groups))
    window = RequestWindow(request.first_window, request.within)
    in_flight: dict[Future[Any], _Pending] = {}
    while True:
        while remaining and window.is_open and len(in_flight) < window.size(len(remaining)):
            group = remaining.pop()
            future = _start(admin, request.subject, group, request.timeout)
            in_flight[future] = _Pending(group, time.time(), time.monotonic())
        if not in_flight:
            admin.poll(0)
            return
        for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
            group, requested_at, started = in_flight.pop(future)
            window.record_answer(time.monotonic() - started)
            found = _settle(handles, admin, request.subject, group, future)
            yield GroupAnswer(group, requested_at, found)


def _start(admin: AdminClient, subject: Subject, group: str, timeout: float) -> Future[Any]:
    if subject is Subject.MEMBERS:
        return admin.describe_consumer_groups([group], request_timeout=timeout)[group]
    request = ConsumerGroupTopicPartitions(group)
    return admin.list_consumer_group_offsets([request], request_timeout=timeout)[group]


def _settle(
    handles: HandleFactory, admin: AdminClient, subject: Subject, group: str, future: Future[Any]
) -> GroupOffsets | int | GroupFailure | None:
    failure = future.exception()
    if failure is not None:
        admin.poll(0)
        problem = handles.problem(failure, subject.operation(group))
        return GroupFailure(problem.kind, problem.detail, problem.code)
    handles.last_error.clear()
    if subject is Subject.MEMBERS:
        return _members(future.result())
    return {
        TopicPartition(found.topic, found.partition): found.offset
        for found in future.result().topic_partitions or ()
        if found.error is None and found.offset >= 0
    }


def _members(described: Any) -> int | None:
    """The number of members; None for a group that the broker does not describe."""
    return None if described.state is ConsumerGroupState.DEAD else len(described.members)
