"""Generates records and commits, and changes topics: for the lab, tests and demonstrations."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

_TRAFFIC_TIMEOUT = 60.0
_QUEUE = 100_000
_REPORT = 100
_ANY_PARTITION = -1  # librdkafka's RD_KAFKA_PARTITION_UA: the partitioner decides
_NOW = 0  # librdkafka: a timestamp of 0 is the time of the call


@dataclass(frozen=True, slots=True)
class Load:
    """What to produce: *count* records, with keys and values derived from the record number.

    Record n has the key `k<n>`; with *keys*, these are used in rotation. *partition* None means
    by key. *timestamp* (epoch seconds) None means now; *rate* (records per second) None means
    unlimited.
    """

    count: int
    keys: tuple[str, ...] = ()
    value_size: int = 100
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: float | None = None
    first: int = 0
    rate: float | None = None

    def key(self, number: int) -> bytes:
        text = self.keys[number % len(self.keys)] if self.keys else f"k{number}"
        return text.encode()

    def value(self, number: int) -> bytes:
        """The record number, padded to `value_size` bytes."""
        return f"v{number}-".encode().ljust(self.value_size, b".")


@dataclass(slots=True)
class LoadResult:
    """Delivery results of one call: the count and the next offset of each partition."""

    count: int = 0
    next_offsets: dict[int, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def record(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.errors.append(f"partition {partition}: {error}")
            return
        self.count += 1
        self.next_offsets[partition] = max(self.next_offsets.get(partition, 0), offset + 1)


def produce(
    properties: Mapping[str, str],
    topic: str,
    load: Load,
    progress: Callable[[int], None] | None = None,
) -> LoadResult:
    """Produce *load* and wait until every record is acknowledged.

    *progress* is called periodically with the number of records sent. Raises RuntimeError with
    the first failure when a record was not accepted.
    """
    producer = Producer({**PRODUCER_SETTINGS, **properties})
    delivered = LoadResult()
    send_load(producer, topic, load, delivered, progress)
    flush_load(producer, topic, delivered)
    return delivered


def consume(
    properties: Mapping[str, str],
    topics: Iterable[str],
    count: int,
    *,
    timeout: float = _TRAFFIC_TIMEOUT,
    isolation: str = "read_uncommitted",
    until_end: bool = False,
) -> list[Message]:
    """Read *count* records of *topics* from their start, without group membership.

    With *until_end*, fewer are returned when every partition has been read to its end. Raises
    TimeoutError when fewer arrive within *timeout* seconds.
    """
    settings = {
        **CONSUMER_SETTINGS,
        **properties,
        "group.id": "mm2slo-traffic",
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
        "enable.partition.eof": until_end,
    }
    consumer = Consumer(settings)
    try:
        wanted = list(topics)
        partitions = [
            TopicPartition(topic, partition, 0)
            for topic in wanted
            for partition in consumer.list_topics(topic, timeout=_TRAFFIC_TIMEOUT)
            .topics[topic]
            .partitions
        ]
        consumer.assign(partitions)
        return read_records(consumer, count, wanted, timeout, ends=len(partitions))
    finally:
        consumer.close()


def commit(
    properties: Mapping[str, str], topic: str, group: str, offsets: Mapping[int, int]
) -> None:
    """Commit *offsets* for *group* without reading; the group must have no members."""
    consumer = Consumer({**CONSUMER_SETTINGS, **properties, "group.id": group})
    try:
        # It never subscribes, so it commits with the generation -1, which brokers accept only for a
        # group without members.
        consumer.commit(offsets=_positions(topic, offsets), asynchronous=False)
    finally:
        consumer.close()


# Refused records must be reported, and retries must not duplicate records.
PRODUCER_SETTINGS = {
    "log_level": 2,
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": _QUEUE,
    "delivery.timeout.ms": 30_000,
    "message.max.bytes": 10_000_000,
}
CONSUMER_SETTINGS = {"log_level": 2, "enable.auto.commit": False, "fetch.wait.max.ms": 50}


def _positions(topic: str, offsets: Mapping[int, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]


def send_load(
    producer: Producer,
    topic: str,
    load: Load,
    delivered: LoadResult,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Queue the records of *load*; their results are added to *delivered*."""
    partition = _ANY_PARTITION if load.partition is None else load.partition
    timestamp = _NOW if load.timestamp is None else int(load.timestamp * 1000)
    headers: list[tuple[str, str | bytes | None]] = [*load.headers]
    start = time.monotonic()
    for sent in range(load.count):
        number = load.first + sent
        if load.rate is not None:
            # Sending happens in the background; this serves delivery reports.
            while (ahead := sent / load.rate - (time.monotonic() - start)) > 0:
                producer.poll(ahead)
        while True:
            try:
                producer.produce(
                    topic,
                    value=load.value(number),
                    key=load.key(number),
                    headers=headers,
                    on_delivery=delivered.record,
                    partition=partition,
                    timestamp=timestamp,
                )
                break
            except BufferError:
                producer.poll(0.1)
        if sent % _REPORT == 0:
            producer.poll(0)
            if progress is not None:
                progress(sent)


def flush_load(producer: Producer, topic: str, delivered: LoadResult) -> None:
    """Wait until every record is acknowledged. Raises RuntimeError if one is not accepted."""
    left = producer.flush(_TRAFFIC_TIMEOUT)
    if left or delivered.errors:
        first = delivered.errors[0] if delivered.errors else "no response"
        raise RuntimeError(
            f"{left + len(delivered.errors)} records for {topic} were not accepted: {first}"
        )


def read_records(
    consumer: Consumer, count: int, topics: list[str], timeout: float, *, ends: int = 1
) -> list[Message]:
    """The next *count* records; fewer if *ends* partitions reach their end first."""
    found: list[Message] = []
    end = time.monotonic() + timeout
    while len(found) < count and ends > 0:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"{len(found)} of {count} records of {', '.join(topics)} in {timeout:.0f} s"
            )
        for message in consumer.consume(count - len(found), timeout=min(left, 0.5)):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends -= 1
            else:
                raise KafkaException(error)
    return found


_ADMIN_TIMEOUT = 60.0
_Acl = TypeVar("_Acl", AclBinding, AclBindingFilter)

# Timestamps of ListOffsets (KIP-79).
_LATEST = -1
_EARLIEST = -2

# Errors of a partition without a leader yet: after its creation or its broker's restart.
_NO_LEADER_YET = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)


class DataAdmin:
    """Changes one cluster's topics; *properties* are librdkafka's.

    Offsets are read by a new consumer each time, so that metadata is never outdated:
    `AdminClient.list_offsets` and `list_consumer_group_offsets` can crash the process when a
    broker stops meanwhile (docs/performance.md). Every method waits until the change is visible,
    except `set_topic_configs`: MirrorMaker 2 may undo a change of a copy before it is seen.
    Raises confluent_kafka.KafkaException when the cluster refuses, TimeoutError when the change
    does not become visible.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties: dict[str, str | int | float | bool] = {"log_level": 2, **properties}
        self._client = AdminClient(self._properties)

    def broker_count(self, timeout: float = _ADMIN_TIMEOUT) -> int:
        """Number of brokers in the metadata; 0 when none answers within *timeout*."""
        try:
            return len(self._client.list_topics(timeout=timeout).brokers)
        except KafkaException:
            return 0

    def partition_count(self, topic: str) -> int:
        """Partitions of *topic*; 0 when it does not exist."""
        found = self._client.list_topics(timeout=_ADMIN_TIMEOUT).topics.get(topic)
        return 0 if found is None or found.error is not None else len(found.partitions)

    def topics(self) -> frozenset[str]:
        """Names of all topics, including internal ones."""
        return frozenset(self._client.list_topics(timeout=_ADMIN_TIMEOUT).topics)

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create *topic* with one replica."""
        new = NewTopic(topic, partitions, 1, config=dict(configs or {}))
        _wait_all(self._client.create_topics([new], operation_timeout=_ADMIN_TIMEOUT))
        self._await_partitions(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        _wait_all(self._client.delete_topics([topic], operation_timeout=_ADMIN_TIMEOUT))
        self._await_partitions(topic, 0)

    def recreate_topic(self, topic: str) -> None:
        """Delete *topic* and create it empty, with the same partition count and a new topic id."""
        partitions = self._require_topic(topic)
        self.delete_topic(topic)
        try:
            self.create_topic(topic, partitions)
        except KafkaException as error:
            # MirrorMaker 2 creates a missing target topic itself and may be faster.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            self._await_partitions(topic, partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        """Increase *topic* to *total* partitions."""
        _wait_all(self._client.create_partitions([NewPartitions(topic, total)]))
        self._await_partitions(topic, total)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete records below the offset of each partition; returns the new log start offsets."""
        self._require_topic(topic)
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        answers = self._client.delete_records(wanted)
        return {
            key.partition: future.result(_ADMIN_TIMEOUT).low_watermark
            for key, future in answers.items()
        }

    def set_topic_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Set configurations of *topic*; None resets one to the broker's default.

        The controller has them when this returns; brokers apply them a moment later.
        """
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=(
                    AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                ),
            )
            for name, value in configs.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        _wait_all(self._client.incremental_alter_configs([resource]))

    def topic_config(self, topic: str, name: str) -> str | None:
        """The effective value of one configuration of *topic*; None when unset."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        (future,) = self._client.describe_configs([resource]).values()
        entry = future.result(_ADMIN_TIMEOUT).get(name)
        return None if entry is None else entry.value

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._offsets(topic, _EARLIEST)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """High watermark of each partition; empty when the topic does not exist."""
        return self._offsets(topic, _LATEST)

    def group_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """The committed offsets of *group*, by topic and partition."""
        # `committed` takes partitions, and returns -1001 (OFFSET_INVALID) for one without a commit.
        topics = self._client.list_topics(timeout=_ADMIN_TIMEOUT).topics
        every = [
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number in topic.partitions
        ]
        with self._open_consumer(group) as consumer:
            found = consumer.committed(every, timeout=_ADMIN_TIMEOUT)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def grant(self, user: str, resource: str, name: str, operation: str) -> None:
        """Allow *user* an *operation* (such as READ) on a *resource* (such as TOPIC).

        Both are names of Kafka's ResourceType and AclOperation; the name `*` means all.
        """
        _wait_all(self._client.create_acls([_acl(AclBinding, user, resource, name, operation)]))
        allowed = _acl(AclBindingFilter, user, resource, name, operation)
        _await(lambda: self._is_bound(allowed), f"permission of {user} for {name}")

    def revoke(self, user: str, resource: str, name: str, operation: str) -> int:
        """Undo `grant`; returns the number of removed bindings."""
        allowed = _acl(AclBindingFilter, user, resource, name, operation)
        answers = self._client.delete_acls([allowed])
        removed = sum(len(future.result(_ADMIN_TIMEOUT)) for future in answers.values())
        _await(lambda: not self._is_bound(allowed), f"removed permission of {user} for {name}")
        return removed

    def _is_bound(self, wanted: AclBindingFilter) -> bool:
        return bool(self._client.describe_acls(wanted).result(_ADMIN_TIMEOUT))

    def _require_topic(self, topic: str) -> int:
        """Partition count of a topic that must exist; librdkafka would only report "no leaders"."""
        count = self.partition_count(topic)
        if not count:
            raise KafkaException(
                KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"topic {topic!r} does not exist")
            )
        return count

    def _offsets(self, topic: str, moment: int) -> dict[int, int]:
        count = self.partition_count(topic)
        request = [TopicPartition(topic, partition, moment) for partition in range(count)]
        if not request:
            return {}
        end = time.monotonic() + _ADMIN_TIMEOUT
        with self._open_consumer("mm2slo-lab") as consumer:
            while True:
                try:
                    return _offsets_of(consumer.offsets_for_times(request, timeout=_ADMIN_TIMEOUT))
                except KafkaException as error:
                    if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() > end:
                        raise
                time.sleep(0.02)

    @contextmanager
    def _open_consumer(self, group: str) -> Iterator[Consumer]:
        # With read_committed, the latest offset would be the last stable offset.
        consumer = Consumer(
            {"isolation.level": "read_uncommitted", **self._properties, "group.id": group}
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def _await_partitions(self, topic: str, count: int) -> None:
        _await(lambda: self.partition_count(topic) == count, f"{topic} with {count} partitions")


def _offsets_of(found: list[TopicPartition]) -> dict[int, int]:
    """The offset of each partition; raises KafkaException for the first error."""
    for each in found:
        if each.error is not None:
            raise KafkaException(each.error)
    return {each.partition: each.offset for each in found}


def _acl(kind: type[_Acl], user: str, resource: str, name: str, operation: str) -> _Acl:
    return kind(
        ResourceType[resource],
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def _await(is_visible: Callable[[], object], what: str) -> None:
    """Wait until a broker has what the controller has confirmed."""
    end = time.monotonic() + _ADMIN_TIMEOUT
    while not is_visible():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not visible after {_ADMIN_TIMEOUT:.0f} s")
        time.sleep(0.02)


def _wait_all(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(_ADMIN_TIMEOUT)
