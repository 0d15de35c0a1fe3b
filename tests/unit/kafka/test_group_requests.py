"""Requests for many groups, with an admin client that answers at once."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient

from mm2slo_core.topology import TopicPartition as Partition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.group_worker import GroupAnswer, GroupProperty, GroupsRequest, request_groups

GROUPS = tuple(f"app-{number:03}" for number in range(400))


def answered(result: object) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


@dataclass
class Admin:
    state: ConsumerGroupState = ConsumerGroupState.STABLE
    timeouts: list[float] = field(default_factory=list)

    def list_consumer_group_offsets(
        self, requests: list[Any], *, request_timeout: float
    ) -> dict[str, Future[Any]]:
        self.timeouts.append(request_timeout)
        committed = SimpleNamespace(topic_partitions=[TopicPartition("orders", 0, 7)])
        return {request.group_id: answered(committed) for request in requests}

    def describe_consumer_groups(
        self, groups: list[str], *, request_timeout: float
    ) -> dict[str, Future[Any]]:
        self.timeouts.append(request_timeout)
        described = SimpleNamespace(state=self.state, members=["one", "two"])
        return {group: answered(described) for group in groups}

    def poll(self, _timeout: float) -> int:
        return 0


def request(admin: Admin, subject: GroupProperty, within: float) -> list[GroupAnswer]:
    handles = HandleFactory("us", {})
    wanted = GroupsRequest(subject, GROUPS, first_window=16, within=within, timeout=10.0)
    return list(request_groups(handles, cast("AdminClient", admin), wanted))


def test_each_request_has_its_own_timeout() -> None:
    # A shared one left none for late requests, whose timeout crashes librdkafka.
    admin = Admin()
    answers = request(admin, GroupProperty.OFFSETS, 60.0)
    assert sorted(answer.group for answer in answers) == list(GROUPS)
    assert all(answer.found == {Partition("orders", 0): 7} for answer in answers)
    assert admin.timeouts == [10.0] * len(GROUPS)


def test_groups_not_requested_in_time_have_no_answer() -> None:
    assert request(Admin(), GroupProperty.OFFSETS, 0.0) == []


@pytest.mark.parametrize(
    ("state", "members"),
    [
        (ConsumerGroupState.STABLE, 2),
        # Of KIP-848 that the client does not know: assigning, reconciling.
        (ConsumerGroupState.UNKNOWN, 2),
        (ConsumerGroupState.DEAD, None),
    ],
)
def test_members_are_known_unless_group_is_described_as_dead(
    state: ConsumerGroupState, members: int | None
) -> None:
    answers = request(Admin(state), GroupProperty.MEMBERS, 60.0)
    assert {answer.found for answer in answers} == {members}
