"""Lists consumer groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.client_handles import HandleFactory
    from mm2slo_kafka.kafka_errors import KafkaOperationError


class GroupListing(NamedTuple):
    """One consumer group. `state` is Kafka's in lower case: stable, empty, dead, unknown, ...

    `type` is classic or consumer (KIP-848), or unknown on brokers that do not report it.
    """

    group: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupsReading:
    """Groups of the cluster; `problems` are errors of brokers whose groups are missing."""

    groups: tuple[GroupListing, ...]
    problems: tuple[KafkaOperationError, ...]


def list_groups(handles: HandleFactory, admin: AdminClient, timeout: float) -> GroupsReading:
    """All consumer groups. Raises KafkaOperationError when no broker answers."""
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
            )
            for found in result.valid
        ),
        problems,
    )
