"""One long-lived client per cluster: metadata, offsets, configurations, groups."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from mm2slo_kafka import configs, groups, metadata
from mm2slo_kafka.admin_handle import AdminHandle
from mm2slo_kafka.errors import KafkaOperationError
from mm2slo_kafka.first_record import FirstRecordReader
from mm2slo_kafka.group_offsets import GroupOffsetsReader
from mm2slo_kafka.handles import HandleFactory
from mm2slo_kafka.offsets import OffsetReader

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.configs import ConfigReading
    from mm2slo_kafka.errors import ErrorKind
    from mm2slo_kafka.first_record import FirstRecord, FirstRecords
    from mm2slo_kafka.group_offsets import GroupOffsets
    from mm2slo_kafka.groups import GroupsReading
    from mm2slo_kafka.metadata import TopicIdentity, TopicListing
    from mm2slo_kafka.offsets import Isolation, OffsetReading

_TIMEOUT = 10.0


class ClusterClient:
    """Everything that is asked of one cluster, but for reading topics to their end.

    Making one does not connect: it raises KafkaOperationError for properties that cannot work, never
    for a cluster that is away. All methods may be called from several threads; readings of
    offsets at one isolation level take turns, and so do calls for first records. Every method
    raises KafkaOperationError when the cluster as a whole fails, within about its *timeout* (seconds);
    what fails for one topic, partition or group only is part of the answer.
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
        self._group_offsets = GroupOffsetsReader(alias, properties, self.handles.counts)
        self._lock = threading.Lock()
        self._offsets: dict[Isolation, OffsetReader] = {}
        self._first_records: dict[Isolation, FirstRecordReader] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the consumers; requests under way in other threads fail."""
        self._group_offsets.close()
        with self._lock:
            offsets, self._offsets = self._offsets, {}
            first_records, self._first_records = self._first_records, {}
        for offset_reader in offsets.values():
            offset_reader.close()
        for record_reader in first_records.values():
            record_reader.close()

    def request_totals(self) -> Mapping[str, int]:
        """Requests sent to this cluster per Kafka API, as of up to ten seconds ago."""
        return self.handles.counts.totals()

    def topics(self, timeout: float = _TIMEOUT) -> TopicListing:
        """All topics with their partition counts, and the cluster id."""
        with self._admin.asking() as admin:
            return metadata.list_topics(self.handles, admin, timeout)

    def identify(
        self, topics: Iterable[str], timeout: float = _TIMEOUT
    ) -> tuple[dict[str, TopicIdentity], dict[str, ErrorKind]]:
        """Id and partition count of each topic, and the topics that gave an error."""
        with self._admin.asking() as admin:
            return metadata.identify_topics(self.handles, admin, topics, timeout)

    def topic_ids(self, topics: Iterable[str], timeout: float = _TIMEOUT) -> dict[str, str]:
        """Ids of those topics that exist, may be seen, and have one (brokers 2.8+)."""
        found, _errors = self.identify(topics, timeout)
        return {
            topic: identity.topic_id
            for topic, identity in found.items()
            if identity.topic_id is not None
        }

    def begin_identify(self, topic: str, timeout: float = _TIMEOUT) -> Future[TopicIdentity | None]:
        """Ask for one topic without waiting; the answer None means that it does not exist."""
        answer = metadata.begin_identify(self.handles, self._admin.get(), topic, timeout)
        answer.add_done_callback(self._admin.note)
        return answer

    def topic_exists(self, topic: str, timeout: float = _TIMEOUT) -> bool:
        """Whether the topic exists."""
        return self.begin_identify(topic, timeout).result() is not None

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> bool:
        """Create a topic; False when it exists already. None: the broker's replication factor."""
        return metadata.create_topic(
            self.handles,
            self._admin.get(),
            topic,
            partitions=partitions,
            replication_factor=replication_factor,
            config=config or {},
            timeout=timeout,
        )

    def end_offsets(
        self,
        partitions: Sequence[TopicPartition],
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> OffsetReading:
        """End offsets: the high watermark, or for read_committed the last stable offset."""
        return self._offset_reader(isolation).read_end(partitions, timeout)

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = _TIMEOUT
    ) -> OffsetReading:
        """Log start offsets."""
        return self._offset_reader("read_uncommitted").read_start(partitions, timeout)

    def offsets_at(
        self,
        partitions: Sequence[TopicPartition],
        timestamp: float,
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> OffsetReading:
        """The first offset whose record is at or after *timestamp*; the end where none is."""
        return self._offset_reader(isolation).read_at(partitions, timestamp, timeout)

    def topic_configs(
        self,
        topics: Iterable[str],
        timeout: float = 30.0,
        *,
        defaults_of: Container[str] | None = None,
    ) -> ConfigReading:
        """Settings of each topic; of those at their default only *defaults_of* (None: all)."""
        with self._admin.asking() as admin:
            return configs.read_topic_configs(
                self.handles, admin, topics, timeout, defaults_of=defaults_of
            )

    def groups(self, timeout: float = _TIMEOUT) -> GroupsReading:
        """All consumer groups with state and type."""
        with self._admin.asking() as admin:
            return groups.list_groups(self.handles, admin, timeout)

    def group_offsets(self, group: str, timeout: float = _TIMEOUT) -> GroupOffsets:
        """What one group committed."""
        result = self.group_offsets_many([group], timeout=timeout)[group]
        if isinstance(result, KafkaOperationError):
            raise result
        return result

    def group_offsets_many(
        self, names: Iterable[str], *, max_in_flight: int = 16, timeout: float = 30.0
    ) -> dict[str, GroupOffsets | KafkaOperationError]:
        """What many groups committed: per group the offsets or the problem. Never raises."""
        return self._group_offsets.read(names, max_in_flight=max_in_flight, timeout=timeout)

    def first_records(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> FirstRecords:
        """The first data record in [offset, end) of each partition; see `FirstRecords`."""
        return self._first_record_reader(isolation).read(ranges, timeout)

    def first_record_at_or_after(
        self,
        partition: TopicPartition,
        offset: int,
        end: int,
        isolation: Isolation = "read_uncommitted",
        timeout: float = _TIMEOUT,
    ) -> FirstRecord | None:
        """The first data record in [offset, end); None when there is none."""
        answer = self.first_records({partition: (offset, end)}, isolation, timeout)
        return answer.one(partition, self.alias)

    def _offset_reader(self, isolation: Isolation) -> OffsetReader:
        with self._lock:
            if isolation not in self._offsets:
                self._offsets[isolation] = OffsetReader(
                    self.handles, self._admin.get, isolation, clock=self._clock
                )
            return self._offsets[isolation]

    def _first_record_reader(self, isolation: Isolation) -> FirstRecordReader:
        with self._lock:
            if isolation not in self._first_records:
                self._first_records[isolation] = FirstRecordReader(
                    self.handles, self._admin.get, isolation
                )
            return self._first_records[isolation]
