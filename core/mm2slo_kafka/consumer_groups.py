"""Lists consumer groups, and the groups of other types, which MirrorMaker 2 does not list either.

confluent-kafka 2.16.1 lists classic and consumer groups, and has nothing for the types Streams
(KIP-1071) and share (KIP-932): it describes them as it describes a missing group. Its deprecated
`list_groups` returns the ids of all groups, since it asks for no type: it is one ListGroups and one
DescribeGroups request for each broker, and needs no more permissions (Describe of each group).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaException

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.client_handles import HandleFactory
    from mm2slo_kafka.kafka_errors import KafkaOperationError


_PROTOCOLS: Final = frozenset({"", "consumer"})


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
    others: frozenset[str] | None = None
    """Ids of groups that are no consumer groups; None if they were not read."""
    others_problems: tuple[KafkaOperationError, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(each.group for each in self.groups)


def list_groups(
    handles: HandleFactory, admin: AdminClient, timeout: float, *, with_others: bool = False
) -> GroupsReading:
    """All consumer groups. Raises KafkaOperationError when no broker answers.

    *with_others*: groups of other types, too; a failure to list these fails nothing else.
    """
    found = _list_consumer_groups(handles, admin, timeout)
    if not with_others or found.problems:
        return found
    try:
        others = _of_any_type(admin, timeout) - found.ids
    except KafkaException as error:
        problem = handles.problem(error, "listing groups of all types")
        return replace(found, others_problems=(problem,))
    if others:
        # Consumer groups may have been created between the two.
        again = _list_consumer_groups(handles, admin, timeout)
        return replace(again, others=None if again.problems else others - again.ids)
    return replace(found, others=others)


def _list_consumer_groups(
    handles: HandleFactory, admin: AdminClient, timeout: float
) -> GroupsReading:
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


def _of_any_type(admin: AdminClient, timeout: float) -> frozenset[str]:
    """Ids of all groups but those of other applications, such as Connect and schema registries."""
    found = admin.list_groups(timeout=timeout)
    return frozenset(str(each.id) for each in found if each.protocol_type in _PROTOCOLS)
