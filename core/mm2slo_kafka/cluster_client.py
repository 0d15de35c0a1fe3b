"""One long-lived client per cluster: metadata, offsets, configurations, groups."""

import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    NewTopic,
)

from mm2slo_core.kafka_permissions import AclRule
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka import cluster_metadata
from mm2slo_kafka.client_handles import AdminHandle, HandleFactory
from mm2slo_kafka.cluster_metadata import ConfigReading, GroupsReading, TopicIdentity, TopicListing
from mm2slo_kafka.first_records import ANY_ANSWER, FirstRecordReader, FirstRecords
from mm2slo_kafka.group_worker import GroupOffsets, GroupRead, GroupWorker
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.offset_requests import Leaders
from mm2slo_kafka.partition_offsets import Isolation, OffsetReader, OffsetReading

_TIMEOUT = 10.0


class ClusterClient:
    """Requests to one cluster; `TopicTail` follows topics.

    The constructor does not connect: it raises KafkaOperationError for invalid properties, never
    for an unreachable cluster. Thread-safe; offset reads at one isolation level are serialised,
    and so are reads of first records. Every method raises KafkaOperationError when the cluster as
    a whole fails, within about its *timeout* (seconds). Failures of single topics, partitions and
    groups are part of the result.
    """

    def __init__(
        self,
        alias: str,
        properties: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.alias = alias
        self.handles = HandleFactory(alias, properties)
        self._clock = clock
        self._admin = AdminHandle(self.handles)
        self._group_worker = GroupWorker(properties, self.handles)
        self._lock = threading.Lock()
        self._leaders: Leaders = {}
        self._offsets: dict[Isolation, OffsetReader] = {}
        self._first_records: dict[Isolation, FirstRecordReader] = {}
        self.handles.close_idle = self._close_idle

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the consumers; requests in progress in other threads fail."""
        self._group_worker.close()
        for reader in self._readers():
            reader.close()

    def request_totals(self) -> Mapping[str, int]:
        """Requests sent to this cluster per Kafka API, up to ten seconds old."""
        return self.handles.counts.totals()

    def admin(self) -> AdminClient:
        """For requests that this class lacks. Raises KafkaOperationError while requests pause."""
        return self._admin.get()

    def topics(self, timeout: float = _TIMEOUT) -> TopicListing:
        """All topics with their partition counts, and the cluster id."""
        with self._admin.request() as admin:
            listing = cluster_metadata.list_topics(self.handles, admin, timeout)
        if listing.leaders != self._leaders:
            self._leaders = listing.leaders  # else the same object, on which parts depend
        return listing

    def identify(
        self, topics: Iterable[str], timeout: float = _TIMEOUT
    ) -> tuple[dict[str, TopicIdentity], dict[str, ErrorKind]]:
        """Id and partition count of each topic, and the errors by topic."""
        with self._admin.request() as admin:
            return cluster_metadata.identify_topics(self.handles, admin, topics, timeout)

    def start_identify(self, topic: str, timeout: float = _TIMEOUT) -> Future[TopicIdentity | None]:
        """Describe one topic without waiting; the result is None when it does not exist."""
        answer = cluster_metadata.start_identify(self.handles, self._admin.get(), topic, timeout)
        answer.add_done_callback(self._admin.record_outcome)
        return answer

    def topic_exists(self, topic: str, timeout: float = _TIMEOUT) -> bool:
        return self.start_identify(topic, timeout).result() is not None

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> bool:
        """Create a topic; False when it exists, whatever its settings.

        *replication_factor* None means the broker's default (KIP-464, brokers 2.4+).
        """
        new = NewTopic(
            topic,
            num_partitions=partitions,
            replication_factor=-1 if replication_factor is None else replication_factor,
            config=dict(config or {}),
        )
        admin = self._admin.get()
        with self.handles.errors(f"creating topic {topic!r}", answered=True):
            answers = admin.create_topics([new], request_timeout=timeout, operation_timeout=timeout)
            failure = answers[topic].exception()
            admin.poll(0)
            if failure is None:
                return True
            error = failure.args[0] if isinstance(failure, KafkaException) else None
            if error is not None and error.code() == error.TOPIC_ALREADY_EXISTS:
                return False
            raise failure

    def end_offsets(
        self,
        partitions: Sequence[TopicPartition],
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> OffsetReading:
        """High watermarks; last stable offsets for read_committed."""
        return self._offset_reader(isolation).read_end(partitions, timeout)

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = _TIMEOUT
    ) -> OffsetReading:
        return self._offset_reader("read_uncommitted").read_start(partitions, timeout)

    def offsets_at(
        self,
        partitions: Sequence[TopicPartition],
        timestamp: float,
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> OffsetReading:
        """The first offset at or after *timestamp* (epoch seconds); without one, the end offset."""
        return self._offset_reader(isolation).read_at(partitions, timestamp, timeout)

    def topic_configs(
        self,
        topics: Iterable[str],
        timeout: float = 30.0,
        *,
        defaults_of: Container[str] | None = None,
    ) -> ConfigReading:
        """Settings of each topic; defaults only for the names in *defaults_of* (None: all)."""
        with self._admin.request() as admin:
            return cluster_metadata.read_topic_configs(
                self.handles, admin, topics, timeout, defaults_of=defaults_of
            )

    def acls(self, timeout: float = _TIMEOUT) -> list[AclRule]:
        """ACLs of topics and groups, but a DENY for single hosts; empty without an authorizer."""
        return cluster_metadata.read_acls(self.handles, self.admin(), timeout)

    def groups(self, timeout: float = _TIMEOUT, *, with_others: bool = False) -> GroupsReading:
        """Consumer groups; *with_others*: ids of Streams and share groups as well."""
        with self._admin.request() as admin:
            return cluster_metadata.list_groups(
                self.handles, admin, timeout, with_others=with_others
            )

    def group_offsets(
        self, names: Iterable[str], *, within: float = 30.0, timeout: float = _TIMEOUT
    ) -> dict[str, GroupRead[GroupOffsets]]:
        """Committed offsets, or the error, of each group. Never raises.

        Groups that could not be requested *within* so many seconds are missing.
        """
        return self._group_worker.offsets(names, within=within, timeout=timeout)

    def group_members(
        self, names: Iterable[str], *, within: float = 30.0, timeout: float = _TIMEOUT
    ) -> dict[str, GroupRead[int | None]]:
        """The number of members likewise; None if unknown."""
        return self._group_worker.members(names, within=within, timeout=timeout)

    def first_records(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> FirstRecords:
        """The first data record in [offset, end) of each partition; see `FirstRecords`."""
        return self._first_record_reader(isolation).read(ranges, timeout)

    def read_failures(self, topics: Iterable[str], timeout: float = 30.0) -> dict[str, ErrorKind]:
        """Why topics cannot be fetched, by their first partition; one that can be is missing."""
        ranges = {TopicPartition(topic, 0): ANY_ANSWER for topic in topics}
        failures = self.first_records(ranges, timeout=timeout).failures
        return {partition.topic: kind for partition, kind in failures.items()}

    def _close_idle(self) -> None:
        self._admin.drop()
        self._group_worker.close_idle()
        for reader in self._readers():
            reader.close(wait=False)

    def _readers(self) -> list[OffsetReader | FirstRecordReader]:
        with self._lock:
            return [*self._offsets.values(), *self._first_records.values()]

    def _offset_reader(self, isolation: Isolation) -> OffsetReader:
        with self._lock:
            if isolation not in self._offsets:
                self._offsets[isolation] = OffsetReader(
                    self.handles,
                    self._admin.get,
                    isolation,
                    leaders=lambda: self._leaders,
                    clock=self._clock,
                )
            return self._offsets[isolation]

    def _first_record_reader(self, isolation: Isolation) -> FirstRecordReader:
        with self._lock:
            if isolation not in self._first_records:
                self._first_records[isolation] = FirstRecordReader(
                    self.handles, self._admin.get, isolation
                )
            return self._first_records[isolation]
