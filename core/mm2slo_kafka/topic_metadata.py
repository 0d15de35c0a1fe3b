"""Topics, their partition counts and ids."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from mm2slo_kafka.chunks import chunks
from mm2slo_kafka.kafka_errors import ErrorKind, kind_of
from mm2slo_kafka.topic_ids import take_topic_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient, TopicDescription  # type: ignore[attr-defined]  # re-exported without saying so

    from mm2slo_kafka.client_handles import HandleFactory
    from mm2slo_kafka.offset_requests import Leaders

_CHUNK = 500
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero UUID, which brokers without topic ids return (before 2.8)."""


@dataclass(frozen=True, slots=True)
class TopicListing:
    """All topics that this user is authorized to describe, with their partition counts.

    A topic is in exactly one of `partition_counts` and `errors`. `leaderless` counts partitions
    without a leader; topics without such partitions are left out. `leaders` has the broker ids
    of each topic's leaders, by partition; -1 without one.
    """

    cluster_id: str | None
    broker_count: int
    partition_counts: Mapping[str, int]
    errors: Mapping[str, ErrorKind]
    leaderless: Mapping[str, int]
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
    leaderless: dict[str, int] = {}
    leaders: dict[str, tuple[int, ...]] = {}
    for name, topic in metadata.topics.items():
        if topic.error is not None:
            errors[name] = kind_of(topic.error)
            continue
        counts[name] = len(topic.partitions)
        leaders[name] = tuple(found.leader for _, found in sorted(topic.partitions.items()))
        missing = sum(1 for leader in leaders[name] if leader < 0)
        if missing:
            leaderless[name] = missing
    brokers = len(metadata.brokers)
    return TopicListing(metadata.cluster_id, brokers, counts, errors, leaderless, leaders)


def identify_topics(
    handles: HandleFactory, admin: AdminClient, topics: Iterable[str], timeout: float
) -> tuple[dict[str, TopicIdentity], dict[str, ErrorKind]]:
    """Id and partition count, or the error, of each topic, in chunked requests.

    Raises KafkaOperationError when the cluster does not answer.
    """
    operation = "describing topics"
    deadline = time.monotonic() + timeout
    found: dict[str, TopicIdentity] = {}
    errors: dict[str, ErrorKind] = {}
    for chunk in chunks(topics, _CHUNK):
        with handles.errors(operation):
            futures = admin.describe_topics(
                TopicCollection(chunk), request_timeout=max(deadline - time.monotonic(), 0.1)
            )
        for name, future in futures.items():
            failure = future.exception()
            if failure is None:
                found[name] = _identity(future.result())
                continue
            admin.poll(0)
            error = failure.args[0] if isinstance(failure, KafkaException) else None
            if error is None or error.code() < 0:
                raise handles.problem(failure, operation) from None
            errors[name] = kind_of(error)
        handles.last_error.clear()
    admin.poll(0)
    return found, errors


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


def create_topic(
    handles: HandleFactory,
    admin: AdminClient,
    topic: str,
    *,
    partitions: int,
    replication_factor: int | None,
    config: Mapping[str, str],
    timeout: float,
) -> bool:
    """Create a topic; False when it exists, whatever its settings. Raises KafkaOperationError.

    *replication_factor* None means the broker's default (KIP-464, brokers 2.4+).
    """
    new = NewTopic(
        topic,
        num_partitions=partitions,
        replication_factor=-1 if replication_factor is None else replication_factor,
        config=dict(config),
    )
    operation = f"creating topic {topic!r}"
    with handles.errors(operation, answered=True):
        future = admin.create_topics([new], request_timeout=timeout, operation_timeout=timeout)[
            topic
        ]
        failure = future.exception()
        admin.poll(0)
        if failure is None:
            return True
        error = failure.args[0] if isinstance(failure, KafkaException) else None
        if error is not None and error.code() == error.TOPIC_ALREADY_EXISTS:
            return False
        raise failure


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
