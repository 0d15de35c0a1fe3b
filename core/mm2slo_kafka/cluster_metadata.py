"""What a cluster reports of its topics and groups: partition counts, ids, settings, group types.

confluent-kafka 2.16.1 lists classic and consumer groups, and has nothing for the types Streams
(KIP-1071) and share (KIP-932), which MirrorMaker 2 does not list either: it describes them as it
describes a missing group. Its deprecated `list_groups` returns the ids of all groups, since it asks
for no type: it is one ListGroups and one DescribeGroups request for each broker, and needs no more
permissions (Describe of each group).
"""

import ctypes
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
    TopicDescription,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    ConfigEntry as RawEntry,
)

from mm2slo_core.kafka_permissions import AclPattern, AclRule, ResourceKind
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, kind_of
from mm2slo_kafka.offset_requests import Leaders
from mm2slo_kafka.request_sizes import chunks

SHORTEST_REQUEST_SECONDS = 0.1
_TOPICS_PER_DESCRIPTION = 500

K = TypeVar("K")
V = TypeVar("V")

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero UUID, which brokers without topic ids return (before 2.8)."""


@dataclass(frozen=True, slots=True)
class TopicListing:
    """All topics that this user is authorized to describe, with their partition counts.

    A topic is in exactly one of `partition_counts` and `errors`. `leaders` has the broker ids of
    each topic's leaders, by partition; -1 without one.
    """

    cluster_id: str | None
    broker_count: int
    partition_counts: Mapping[str, int]
    errors: Mapping[str, ErrorKind]
    leaders: Leaders = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """An existing topic; `topic_id` is None on brokers without topic ids (before 2.8)."""

    topic_id: str | None
    partitions: int


def list_topics(handles: HandleFactory, admin: AdminClient, timeout: float) -> TopicListing:
    """Every topic of the cluster in one metadata request. Raises KafkaOperationError."""
    with handles.errors("listing topics", answered=True):
        try:
            metadata = admin.list_topics(timeout=timeout)
        finally:
            admin.poll(0)
    counts: dict[str, int] = {}
    errors: dict[str, ErrorKind] = {}
    leaders: dict[str, tuple[int, ...]] = {}
    for name, topic in metadata.topics.items():
        if topic.error is not None:
            errors[name] = kind_of(topic.error)
            continue
        counts[name] = len(topic.partitions)
        leaders[name] = tuple(partition.leader for _, partition in sorted(topic.partitions.items()))
    brokers = len(metadata.brokers)
    return TopicListing(metadata.cluster_id, brokers, counts, errors, leaders)


def identify_topics(
    handles: HandleFactory, admin: AdminClient, topics: Iterable[str], timeout: float
) -> tuple[dict[str, TopicIdentity], dict[str, ErrorKind]]:
    """Id and partition count, or the error, of each topic, in chunked requests.

    Raises KafkaOperationError when the cluster does not answer.
    """
    identities: dict[str, TopicIdentity] = {}
    errors: dict[str, ErrorKind] = {}
    for name, answer in _answers(
        handles,
        admin,
        "describing topics",
        requests=chunks(topics, _TOPICS_PER_DESCRIPTION),
        send=lambda names, seconds: admin.describe_topics(
            TopicCollection(names), request_timeout=seconds
        ),
        timeout=timeout,
    ):
        if isinstance(answer, ErrorKind):
            errors[name] = answer
        else:
            identities[name] = _identity(answer)
    return identities, errors


def _answers(
    handles: HandleFactory,
    admin: AdminClient,
    operation: str,
    *,
    requests: Iterable[list[str]],
    send: Callable[[list[str], float], Mapping[K, Future[V]]],
    timeout: float,
) -> Iterator[tuple[K, V | ErrorKind]]:
    """What each of *requests* returns for each of its names, or the error.

    Raises KafkaOperationError when the cluster does not answer.
    """
    deadline = time.monotonic() + timeout
    for names in requests:
        with handles.errors(operation):
            futures = send(names, max(deadline - time.monotonic(), SHORTEST_REQUEST_SECONDS))
        for key, future in futures.items():
            failure = future.exception()
            if failure is None:
                yield key, future.result()
                continue
            admin.poll(0)
            error = failure.args[0] if isinstance(failure, KafkaException) else None
            # Negative codes are librdkafka's own: no broker has answered.
            if error is None or error.code() < 0:
                raise handles.problem(failure, operation) from None
            yield key, kind_of(error)
        handles.last_error.clear()
    admin.poll(0)


def start_identify(
    handles: HandleFactory, admin: AdminClient, topic: str, timeout: float
) -> Future[TopicIdentity | None]:
    """Describe one topic without waiting; the result is None when it does not exist.

    The future raises KafkaOperationError for every other failure.
    """
    operation = f"describing topic {topic!r}"
    answer: Future[TopicIdentity | None] = Future()
    answer.set_running_or_notify_cancel()

    def settle(described: Future[TopicDescription]) -> None:
        failure = described.exception()
        admin.poll(0)  # runs the error callback, which has the cause
        if failure is None:
            handles.last_error.clear()
            answer.set_result(_identity(described.result()))
        elif kind_of_failure(failure) is ErrorKind.UNKNOWN_TOPIC:
            handles.last_error.clear()
            answer.set_result(None)
        else:
            answer.set_exception(handles.problem(failure, operation))

    with handles.errors(operation):
        futures = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout)
    futures[topic].add_done_callback(settle)
    admin.poll(0)
    return answer


def kind_of_failure(failure: BaseException) -> ErrorKind:
    """The kind of an exception from a confluent-kafka future."""
    if isinstance(failure, KafkaException) and failure.args:
        error: KafkaError = failure.args[0]
        return kind_of(error)
    return ErrorKind.OTHER


def _identity(description: TopicDescription) -> TopicIdentity:
    topic_id = take_topic_id(description)
    return TopicIdentity(
        None if topic_id in {_NO_ID, "None", ""} else topic_id, len(description.partitions)
    )


class _Held(NamedTuple):
    """Refers to an object that nothing else refers to."""

    topic_id: object


def take_topic_id(description: TopicDescription) -> str:
    """The text of a topic id to which only *description* refers.

    confluent-kafka 2.16 never releases its own reference: 100 bytes per topic and description,
    600 MB a day for 2,000 topics described twice a minute. It is released here if there is one.
    """
    text = str(description.topic_id)
    if isinstance(description.topic_id, Uuid):
        leaked = _references(description) - _references(_Held(object()))
        if leaked == 1:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(description.topic_id))
    return text


def _references(holder: TopicDescription | _Held) -> int:
    return sys.getrefcount(holder.topic_id)


_TOPICS_PER_CONFIG_REQUEST = 50
"""A response holds about 35 entries of 1.5 KB per topic: a chunk needs some 3 MB of memory."""
_CONFIG_SOURCES = {source.value: source.name for source in ConfigSource}


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic.

    `value` is None for a sensitive or unset value. `is_default` is true unless the topic
    overrides it; `source` is Kafka's config source (`DescribeConfigsResponse`).
    """

    value: str | None
    is_default: bool
    source: str


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """Settings of topics; each requested topic is in exactly one of the two."""

    configs: dict[str, dict[str, ConfigEntry]]
    errors: dict[str, ErrorKind]


def read_topic_configs(
    handles: HandleFactory,
    admin: AdminClient,
    topics: Iterable[str],
    timeout: float,
    *,
    defaults_of: Container[str] | None = None,
) -> ConfigReading:
    """Settings of each topic, in chunked requests.

    A topic has about 35 settings, nearly all at their default: with *defaults_of*, only defaults
    of these names are kept. Raises KafkaOperationError when the cluster does not answer.
    """
    reading = ConfigReading({}, {})
    topic_type = ConfigResource.Type.TOPIC
    for resource, answer in _answers(
        handles,
        admin,
        "reading topic configurations",
        requests=chunks(topics, _TOPICS_PER_CONFIG_REQUEST),
        send=lambda names, seconds: admin.describe_configs(
            [ConfigResource(topic_type, name) for name in names], request_timeout=seconds
        ),
        timeout=timeout,
    ):
        if isinstance(answer, ErrorKind):
            reading.errors[resource.name] = answer
            continue
        entries = ((sys.intern(name), _config_entry(entry)) for name, entry in answer.items())
        reading.configs[resource.name] = {
            name: entry
            for name, entry in entries
            if defaults_of is None or not entry.is_default or name in defaults_of
        }
    return reading


def _config_entry(entry: RawEntry) -> ConfigEntry:
    source = cast("int", entry.source)  # the client's type stub is wrong: it is an int
    return ConfigEntry(
        None if entry.is_sensitive else entry.value,
        source != ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        _CONFIG_SOURCES.get(source, "UNKNOWN_CONFIG"),
    )


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
                each.group_id,
                each.state.name.lower() if each.state else "unknown",
                each.type.name.lower() if each.type else "unknown",
            )
            for each in result.valid
        ),
        problems,
    )


def _of_any_type(admin: AdminClient, timeout: float) -> frozenset[str]:
    """Ids of all groups but those of other applications, such as Connect and schema registries."""
    groups = admin.list_groups(timeout=timeout)
    return frozenset(str(each.id) for each in groups if each.protocol_type in _PROTOCOLS)


def read_acls(handles: HandleFactory, admin: AdminClient, timeout: float) -> list[AclRule]:
    """ACLs of topics and groups, but a DENY for single hosts; empty without an authorizer.

    Raises KafkaOperationError.
    """
    operation = "describing ACLs"
    with handles.errors(operation, answered=True):
        options = {"include_authorized_operations": True, "request_timeout": timeout}
        cluster = admin.describe_cluster(**options).result()
    if AclOperation.DESCRIBE not in (cluster.authorized_operations or ()):
        # librdkafka 2.16 would return an empty list.
        alias, detail = handles.alias, "Describe on the cluster is denied"
        kind = ErrorKind.AUTHORIZATION
        raise KafkaOperationError(kind, cluster=alias, operation=operation, detail=detail)
    kinds: dict[ResourceKind, Any] = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
    rules: list[AclRule] = []
    for kind_name, resource in kinds.items():
        wanted = AclBindingFilter(
            resource,
            None,  # type: ignore[arg-type]  # None means any; missing in the stub
            ResourcePatternType.ANY,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        with handles.errors(operation):
            bindings = admin.describe_acls(wanted, request_timeout=timeout).result()
        for each in bindings:
            allows = each.permission_type is AclPermissionType.ALLOW
            if allows or each.host == "*":
                prefixed = each.resource_pattern_type is ResourcePatternType.PREFIXED
                pattern = AclPattern(each.name, prefixed)
                allowed = operation_name(each.operation)
                rules.append(AclRule(each.principal, kind_name, pattern, allowed, allows))
    return rules


def operation_name(operation: AclOperation) -> str:
    """As in Kafka's documentation: DESCRIBE_CONFIGS is DescribeConfigs."""
    return str(operation.name).title().replace("_", "")
