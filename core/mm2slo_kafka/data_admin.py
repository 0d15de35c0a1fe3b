"""Changes topics and their data, for the lab and for tests."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it has no __all__
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

_TIMEOUT = 60.0
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

    def broker_count(self, timeout: float = _TIMEOUT) -> int:
        """Number of brokers in the metadata; 0 when none answers within *timeout*."""
        try:
            return len(self._client.list_topics(timeout=timeout).brokers)
        except KafkaException:
            return 0

    def partition_count(self, topic: str) -> int:
        """Partitions of *topic*; 0 when it does not exist."""
        found = self._client.list_topics(timeout=_TIMEOUT).topics.get(topic)
        return 0 if found is None or found.error is not None else len(found.partitions)

    def topics(self) -> frozenset[str]:
        """Names of all topics, including internal ones."""
        return frozenset(self._client.list_topics(timeout=_TIMEOUT).topics)

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create *topic* with one replica."""
        new = NewTopic(topic, partitions, 1, config=dict(configs or {}))
        _wait_all(self._client.create_topics([new], operation_timeout=_TIMEOUT))
        self._await_partitions(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        _wait_all(self._client.delete_topics([topic], operation_timeout=_TIMEOUT))
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
            key.partition: future.result(_TIMEOUT).low_watermark for key, future in answers.items()
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
        entry = future.result(_TIMEOUT).get(name)
        return None if entry is None else entry.value

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._offsets(topic, _EARLIEST)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """High watermark of each partition; empty when the topic does not exist."""
        return self._offsets(topic, _LATEST)

    def group_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """The committed offsets of *group*, by topic and partition."""
        topics = self._client.list_topics(timeout=_TIMEOUT).topics
        every = [
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number in topic.partitions
        ]
        with self._open_consumer(group) as consumer:
            found = consumer.committed(every, timeout=_TIMEOUT)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def grant(self, user: str, resource: str, name: str, operation: str) -> None:
        """Allow *user* an *operation* (such as READ) on a *resource* (such as TOPIC).

        Both are names of Kafka's ResourceType and AclOperation; the name `*` means all.
        """
        _wait_all(self._client.create_acls([_acl(user, resource, name, operation)]))
        allowed = _filter(user, resource, name, operation)
        _await(lambda: self._is_bound(allowed), f"permission of {user} for {name}")

    def revoke(self, user: str, resource: str, name: str, operation: str) -> int:
        """Undo `grant`; returns the number of removed bindings."""
        allowed = _filter(user, resource, name, operation)
        answers = self._client.delete_acls([allowed])
        removed = sum(len(future.result(_TIMEOUT)) for future in answers.values())
        _await(lambda: not self._is_bound(allowed), f"removed permission of {user} for {name}")
        return removed

    def _is_bound(self, wanted: AclBindingFilter) -> bool:
        return bool(self._client.describe_acls(wanted).result(_TIMEOUT))

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
        end = time.monotonic() + _TIMEOUT
        with self._open_consumer("mm2slo-lab") as consumer:
            while True:
                try:
                    return _offsets_of(consumer.offsets_for_times(request, timeout=_TIMEOUT))
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


def _acl(user: str, resource: str, name: str, operation: str) -> AclBinding:
    return AclBinding(
        ResourceType[resource],
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def _filter(user: str, resource: str, name: str, operation: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType[resource],
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        None,  # type: ignore[arg-type]  # None means any host; missing in the stub
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def _await(is_visible: Callable[[], object], what: str) -> None:
    """Wait until a broker has what the controller has confirmed."""
    end = time.monotonic() + _TIMEOUT
    while not is_visible():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not visible after {_TIMEOUT:.0f} s")
        time.sleep(0.02)


def _wait_all(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(_TIMEOUT)
