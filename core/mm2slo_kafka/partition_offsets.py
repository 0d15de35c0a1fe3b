"""Start and end offsets of many partitions in one batched request per broker.

`Consumer.offsets_for_times` with the timestamps -1 (end) and -2 (start) of ListOffsets (KIP-79)
costs the least, but returns nothing when one leader is down. Offsets are then requested per
leader for a minute.

`AdminClient.list_offsets` has a result per partition, but is not used: when its leader lookup
times out, librdkafka (2.16.1) frees memory twice, which crashes the process.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_kafka.kafka_errors import ErrorKind, kind_of
from mm2slo_kafka.topic_metadata import identify_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient, ClusterMetadata  # type: ignore[attr-defined]  # re-exported without saying so

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.client_handles import HandleFactory

Isolation = Literal["read_uncommitted", "read_committed"]

_END = -1
_START = -2
_BATCHED_TIMEOUT_SHARE = 0.5
"""Share of the timeout for the batched request, before requests per leader are tried."""
_DEGRADED_SECONDS = 60.0
_MAX_REQUESTS = 64
"""To one leader per call."""
_RENEW_SECONDS = 5.0
"""Least time between two replacements of a consumer with outdated metadata."""
_FATAL_KINDS = frozenset({ErrorKind.AUTHENTICATION, ErrorKind.TLS, ErrorKind.INVALID_CONFIG})
"""Failures that requests per leader would not avoid."""


@dataclass(frozen=True, slots=True)
class OffsetReading:
    """Offsets of partitions at a time between `requested_at` and `answered_at`.

    Each requested partition is in exactly one of `offsets` and `errors`.
    """

    offsets: dict[TopicPartition, int]
    errors: dict[TopicPartition, ErrorKind]
    requested_at: float
    answered_at: float


class OffsetReader:
    """Reads offsets at one isolation level. Thread-safe: calls are serialised."""

    def __init__(
        self,
        handles: HandleFactory,
        admin: Callable[[], AdminClient],
        isolation: Isolation,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._handles = handles
        self._admin = admin
        self._isolation: Isolation = isolation
        self._clock = clock
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._raw: dict[int, tuple[tuple[TopicPartition, ...], list[RawPartition]]] = {}
        self._degraded_until = 0.0
        self._renew_after = 0.0

    def read_end(self, partitions: Sequence[TopicPartition], timeout: float) -> OffsetReading:
        """High watermarks; last stable offsets for read_committed."""
        return self._read(partitions, _END, timeout, "reading end offsets")

    def read_start(self, partitions: Sequence[TopicPartition], timeout: float) -> OffsetReading:
        return self._read(partitions, _START, timeout, "reading start offsets")

    def read_at(
        self, partitions: Sequence[TopicPartition], timestamp: float, timeout: float
    ) -> OffsetReading:
        """The first offset at or after *timestamp* (epoch seconds); without one, the end offset."""
        if timestamp < 0:
            raise ValueError(f"timestamp {timestamp} is negative; expected epoch seconds")
        moment = int(timestamp * 1000)
        reading = self._read_by_time(partitions, moment, timeout)
        later = [partition for partition, offset in reading.offsets.items() if offset < 0]
        if not later:
            return reading
        # End offsets first, then a second lookup: a record appended between the first lookup
        # and the end offset would be missed.
        ends = self.read_end(later, timeout)
        again = self._read_by_time(list(ends.offsets), moment, timeout)
        kept = {partition: at for partition, at in reading.offsets.items() if at >= 0}
        found = {
            partition: ends.offsets[partition] if at < 0 else at
            for partition, at in again.offsets.items()
        }
        return OffsetReading(
            {**kept, **found},
            {**reading.errors, **ends.errors, **again.errors},
            reading.requested_at,
            again.answered_at,
        )

    def close(self) -> None:
        with self._lock:
            self._drop_consumer()

    def _read_by_time(
        self, partitions: Sequence[TopicPartition], moment: int, timeout: float
    ) -> OffsetReading:
        """Kafka's result: -1 where no record is at or after the time."""
        return self._read(partitions, moment, timeout, "looking up offsets by time")

    def _read(
        self, partitions: Sequence[TopicPartition], moment: int, timeout: float, operation: str
    ) -> OffsetReading:
        wanted = tuple(partitions)
        requested_at = self._clock()
        if not wanted:
            return OffsetReading({}, {}, requested_at, requested_at)
        deadline = time.monotonic() + timeout
        with self._lock:
            raw = self._timed_partitions(wanted, moment)
            if time.monotonic() >= self._degraded_until:
                try:
                    return self._read_batched(
                        wanted, raw, _lowest(moment), timeout * _BATCHED_TIMEOUT_SHARE, requested_at
                    )
                except KafkaException as error:
                    problem = self._handles.problem(error, operation)
                    if problem.kind in _FATAL_KINDS:
                        raise problem from None
                    if problem.kind is ErrorKind.UNKNOWN_TOPIC:
                        return self._classify_unreadable(wanted, deadline, requested_at)
                    self._degraded_until = time.monotonic() + _DEGRADED_SECONDS
            requested_at = self._clock()
            with self._handles.errors(operation, answered=True):
                return self._read_by_leader(wanted, raw, moment, deadline, requested_at)

    def _read_batched(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        lowest: int,
        timeout: float,
        requested_at: float,
    ) -> OffsetReading:
        reading = self._request_offsets(wanted, raw, lowest, timeout, requested_at)
        if self._drop_outdated_consumer(reading):
            reading = self._request_offsets(wanted, raw, lowest, timeout, requested_at)
        return reading

    def _request_offsets(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        lowest: int,
        timeout: float,
        requested_at: float,
    ) -> OffsetReading:
        consumer = self._open_consumer()
        try:
            results = consumer.offsets_for_times(raw, timeout=timeout)
        finally:
            consumer.poll(0)  # serves error, log and statistics callbacks
        answered_at = self._clock()
        self._handles.last_error.clear()
        if [(found.topic, found.partition) for found in results] != list(wanted):
            raise RuntimeError("librdkafka returned other partitions than requested")
        offsets = {
            partition: found.offset
            for partition, found in zip(wanted, results, strict=True)
            if found.error is None and found.offset >= lowest
        }
        errors = {}
        if len(offsets) < len(wanted):
            errors = {
                partition: _kind(found.error)
                for partition, found in zip(wanted, results, strict=True)
                if partition not in offsets
            }
        return OffsetReading(offsets, errors, requested_at, answered_at)

    def _drop_outdated_consumer(self, reading: OffsetReading) -> bool:
        """Drop a consumer that does not know a topic's newer partitions; True if it was dropped.

        librdkafka keeps topic metadata for minutes and sends no request for a partition that is
        not in it. A new consumer starts with current metadata.
        """
        known = {partition.topic for partition in reading.offsets}
        if time.monotonic() < self._renew_after or not any(
            kind is ErrorKind.UNKNOWN_TOPIC and partition.topic in known
            for partition, kind in reading.errors.items()
        ):
            return False
        self._renew_after = time.monotonic() + _RENEW_SECONDS
        self._drop_consumer()
        return True

    def _read_by_leader(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        moment: int,
        deadline: float,
        requested_at: float,
    ) -> OffsetReading:
        """Request offsets per leader, so that one that is down does not affect the others."""
        metadata = self._describe(max(deadline - time.monotonic(), 0.1))
        by_leader: defaultdict[int, list[int]] = defaultdict(list)
        errors: dict[TopicPartition, ErrorKind] = {}
        for index, partition in enumerate(wanted):
            leader = _leader(metadata, partition)
            if isinstance(leader, ErrorKind):
                errors[partition] = leader
            else:
                by_leader[leader].append(index)
        offsets: dict[TopicPartition, int] = {}
        failures: list[KafkaException] = []
        for asked, indexes in enumerate(by_leader.values()):
            its = tuple(wanted[index] for index in indexes)
            until = time.monotonic() + max(deadline - time.monotonic(), 0.1) / (
                len(by_leader) - asked
            )
            for part in self._request_by_halves(
                its, [raw[index] for index in indexes], _lowest(moment), until, requested_at
            ):
                if isinstance(part, OffsetReading):
                    offsets.update(part.offsets)
                    errors.update(part.errors)
                else:
                    failure, failed = part
                    failures.append(failure)
                    errors.update(dict.fromkeys(failed, kind_of(failure.args[0])))
        if failures and not offsets:
            raise failures[0]
        if not errors:
            self._degraded_until = 0.0
        return OffsetReading(offsets, errors, requested_at, self._clock())

    def _request_by_halves(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        lowest: int,
        deadline: float,
        requested_at: float,
    ) -> Iterator[OffsetReading | tuple[KafkaException, tuple[TopicPartition, ...]]]:
        """Request offsets from one leader; if it refuses one partition, and so all, bisect them.

        A leader may refuse a topic that was just created. Results and failures together cover
        *wanted*; the number of requests is bounded.
        """
        queue = [(wanted, raw)]
        for _ in range(_MAX_REQUESTS):
            if not queue:
                return
            part, its_raw = queue.pop()
            try:
                remaining = max(deadline - time.monotonic(), 0.1)
                yield self._request_offsets(part, its_raw, lowest, remaining, requested_at)
            except KafkaException as failure:
                refused = failure.args[0].code() > 0
                if not refused or len(part) == 1 or time.monotonic() > deadline:
                    yield failure, part
                    continue
                half = len(part) // 2
                queue += [(part[half:], its_raw[half:]), (part[:half], its_raw[:half])]
                last = failure
        for part, _its_raw in queue:
            yield last, part

    def _describe(self, timeout: float) -> ClusterMetadata:
        admin = self._admin()
        try:
            return admin.list_topics(timeout=timeout)
        finally:
            admin.poll(0)

    def _classify_unreadable(
        self, wanted: tuple[TopicPartition, ...], deadline: float, requested_at: float
    ) -> OffsetReading:
        """Distinguish partitions without a leader from unknown ones: librdkafka does not."""
        topics = dict.fromkeys(topic for topic, _partition in wanted)
        known, errors = identify_topics(
            self._handles, self._admin(), topics, max(deadline - time.monotonic(), 0.1)
        )
        return OffsetReading(
            {},
            {
                partition: errors[partition.topic]
                if partition.topic in errors
                else ErrorKind.UNREACHABLE
                if partition.partition < known[partition.topic].partitions
                else ErrorKind.UNKNOWN_TOPIC
                for partition in wanted
            },
            requested_at,
            self._clock(),
        )

    def _timed_partitions(
        self, wanted: tuple[TopicPartition, ...], moment: int
    ) -> list[RawPartition]:
        held = self._raw.get(moment)
        if held is not None and held[0] == wanted:
            return held[1]
        raw = [RawPartition(topic, partition, moment) for topic, partition in wanted]
        if moment < 0:  # times are rarely requested twice
            self._raw[moment] = (wanted, raw)
        return raw

    def _open_consumer(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._handles.consumer({"isolation.level": self._isolation})
        return self._consumer

    def _drop_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _leader(metadata: ClusterMetadata, partition: TopicPartition) -> int | ErrorKind:
    """The leader of *partition*, or the reason why it has none."""
    topic = metadata.topics.get(partition.topic)
    if topic is None:
        return ErrorKind.UNKNOWN_TOPIC
    if topic.error is not None:
        return kind_of(topic.error)
    found = topic.partitions.get(partition.partition)
    if found is None:
        return ErrorKind.UNKNOWN_TOPIC
    return found.leader if found.leader in metadata.brokers else ErrorKind.UNREACHABLE


def _lowest(moment: int) -> int:
    """The lowest valid result: -1 means that no record is at or after a time (KIP-79)."""
    return 0 if moment < 0 else -1


def _kind(error: KafkaError | None) -> ErrorKind:
    return ErrorKind.TIMEOUT if error is None else kind_of(error)
