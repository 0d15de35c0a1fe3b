"""Start and end offsets of many partitions in few requests per broker.

`Consumer.offsets_for_times` with the timestamps -1 (end) and -2 (start) of ListOffsets (KIP-79)
costs the least, but returns nothing when one leader is down. Offsets are then requested per
leader for a minute. It returns nothing either when a broker refuses one partition, of a topic that
was deleted or denied since the consumer read its metadata, but a new consumer has an error for
that partition alone. It keeps errors as long as other metadata, though: five minutes.

`AdminClient.list_offsets` has a result per partition, but is not used: when its leader lookup
times out, librdkafka (2.16.1) frees memory twice, which crashes the process.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    ClusterMetadata,
)

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_metadata import identify_topics
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.offset_requests import (
    PART_SIZE,
    Leaders,
    OffsetAnswer,
    RequestPart,
    is_refused,
    lowest_offset,
    read_by_leader,
    request_parts,
    split_by_leader,
)

Isolation = Literal["read_uncommitted", "read_committed"]
_END = -1
_START = -2

_BATCHED_TIMEOUT_SHARE = 0.5
"""Share of the timeout for the batched request, before requests per leader are tried."""
_DEGRADED_SECONDS = 60.0

_RENEW_SECONDS = 5.0
"""Least time between two replacements of a consumer with outdated metadata."""

_FATAL_KINDS = frozenset({ErrorKind.AUTHENTICATION, ErrorKind.TLS, ErrorKind.INVALID_CONFIG})
"""Failures that requests per leader would not avoid."""

_REMEMBERED_KINDS = frozenset(
    {ErrorKind.UNKNOWN_TOPIC, ErrorKind.AUTHORIZATION, ErrorKind.UNREACHABLE}
)
"""Errors of librdkafka's metadata; brokers are not asked."""


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
        leaders: Callable[[], Leaders] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._handles = handles
        self._admin = admin
        self._isolation: Isolation = isolation
        self._leaders = leaders
        self._clock = clock
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._end_parts: tuple[tuple[TopicPartition, ...], Leaders, list[RequestPart]] | None = None
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
        earlier = {partition: at for partition, at in reading.offsets.items() if at >= 0}
        reread = {
            partition: ends.offsets[partition] if at < 0 else at
            for partition, at in again.offsets.items()
        }
        return OffsetReading(
            {**earlier, **reread},
            {**reading.errors, **ends.errors, **again.errors},
            reading.requested_at,
            again.answered_at,
        )

    def close(self, *, wait: bool = True) -> None:
        """Close the consumer; without *wait*, unless it is in use."""
        if self._lock.acquire(blocking=wait):
            self._drop_consumer()
            self._lock.release()

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
        self._handles.check_login(operation)
        deadline = time.monotonic() + timeout
        with self._lock:
            if time.monotonic() >= self._degraded_until:
                try:
                    batched = self._read_batched(
                        self._split(wanted, moment),
                        lowest_offset(moment),
                        time.monotonic() + timeout * _BATCHED_TIMEOUT_SHARE,
                        requested_at,
                    )
                except KafkaException as error:
                    problem = self._handles.problem(error, operation)
                    if problem.kind in _FATAL_KINDS:
                        raise problem from None
                    self._degraded_until = time.monotonic() + _DEGRADED_SECONDS
                else:
                    if batched is not None:
                        return batched
            requested_at = self._clock()
            with self._handles.errors(operation, answered=True):
                return self._read_by_leader(wanted, moment, deadline, requested_at)

    def _read_batched(
        self, parts: Sequence[RequestPart], lowest: int, deadline: float, requested_at: float
    ) -> OffsetReading | None:
        """None if a part was refused. Raises KafkaException if brokers do not answer."""
        reading, refusals = self._request_all(parts, lowest, deadline, requested_at)
        is_outdated = any(code > 0 for code in refusals) or self._is_outdated(reading)
        if is_outdated and self._renew_consumer():
            reading, refusals = self._request_all(parts, lowest, deadline, requested_at)
        return None if refusals else reading

    def _request_all(
        self, parts: Sequence[RequestPart], lowest: int, deadline: float, requested_at: float
    ) -> tuple[OffsetReading, list[int]]:
        """The offsets, and the error codes of the parts that were refused."""
        offsets: dict[TopicPartition, int] = {}
        errors: dict[TopicPartition, ErrorKind] = {}
        refusals: list[int] = []
        for part, answer in zip(parts, self._request(parts, lowest, deadline), strict=True):
            if not isinstance(answer, KafkaException):
                offsets.update(answer.offsets)
                errors.update(answer.errors)
            elif is_refused(answer):
                refusals.append(answer.args[0].code())
                errors.update(dict.fromkeys(part.partitions, ErrorKind.UNKNOWN_TOPIC))
            else:
                raise answer
        return OffsetReading(offsets, errors, requested_at, self._clock()), refusals

    def _request(
        self, parts: Sequence[RequestPart], lowest: int, deadline: float
    ) -> list[OffsetAnswer | KafkaException]:
        consumer = self._open_consumer()
        try:
            answers = request_parts(consumer, parts, lowest, deadline)
        finally:
            consumer.poll(0)  # serves error, log and statistics callbacks
        if not any(isinstance(answer, KafkaException) for answer in answers):
            self._handles.last_error.clear()
        return answers

    def _is_outdated(self, reading: OffsetReading) -> bool:
        """Whether partitions have errors that the consumer only remembers.

        Either they had a leader when topics were listed, or other partitions of their topic are
        read: librdkafka sends no request for a partition that is not in its metadata.
        """
        if not reading.errors:
            return False
        leaders, read = self._leaders(), {partition.topic for partition in reading.offsets}
        return any(
            (kind is ErrorKind.UNKNOWN_TOPIC and topic in read)
            or (
                kind in _REMEMBERED_KINDS
                and max(leaders.get(topic, ())[number:][:1], default=-1) >= 0
            )
            for (topic, number), kind in reading.errors.items()
        )

    def _renew_consumer(self) -> bool:
        """Replace the consumer by one with current metadata; False if the last one is too new."""
        if time.monotonic() < self._renew_after:
            return False
        self._renew_after = time.monotonic() + _RENEW_SECONDS
        self._drop_consumer()
        return True

    def _read_by_leader(
        self,
        wanted: tuple[TopicPartition, ...],
        moment: int,
        deadline: float,
        requested_at: float,
    ) -> OffsetReading:
        """Raises KafkaException if no leader answers."""
        metadata = self._describe(max(deadline - time.monotonic(), 0.1))
        try:
            answer = read_by_leader(metadata, wanted, moment, deadline, self._request)
        except KafkaException as error:
            # Partitions that have a leader are not known to an older consumer.
            if not (is_refused(error) and self._renew_consumer()):
                raise
            answer = read_by_leader(metadata, wanted, moment, deadline, self._request)
        if not answer.errors:
            self._degraded_until = 0.0
        unlisted = {p.topic for p in answer.errors if p.topic not in metadata.topics}
        if unlisted:
            # Brokers do not list topics that are denied; only a request by name shows it.
            _known, why = identify_topics(
                self._handles, self._admin(), unlisted, max(deadline - time.monotonic(), 0.1)
            )
            answer.errors.update({p: why[p.topic] for p in answer.errors if p.topic in why})
        return OffsetReading(answer.offsets, answer.errors, requested_at, self._clock())

    def _describe(self, timeout: float) -> ClusterMetadata:
        admin = self._admin()
        try:
            return admin.list_topics(timeout=timeout)
        finally:
            admin.poll(0)

    def _split(self, wanted: tuple[TopicPartition, ...], moment: int) -> list[RequestPart]:
        leaders = self._leaders()
        held = self._end_parts
        if moment == _END and held is not None and held[:2] == (wanted, leaders):
            return held[2]
        groups = split_by_leader(wanted, leaders, PART_SIZE)
        parts = [RequestPart.of(group, moment) for group in groups]
        if moment == _END:  # others are requested rarely, and their parts take memory
            self._end_parts = (wanted, leaders, parts)
        return parts

    def _open_consumer(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._handles.consumer({"isolation.level": self._isolation})
        return self._consumer

    def _drop_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
