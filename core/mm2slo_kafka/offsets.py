"""Start and end offsets of many partitions in one batched request per broker.

`Consumer.offsets_for_times` with the timestamps -1 (end) and -2 (start) of ListOffsets (KIP-79)
costs the least, but returns nothing at all when one leader is down. Then the same is asked for
the partitions of each leader apart, for a while.

`AdminClient.list_offsets` answers per partition, but is not used: when its look-up of leaders
times out, librdkafka (2.16.1) frees memory twice, which ends the process.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_kafka.errors import ErrorKind, kind_of
from mm2slo_kafka.metadata import identify_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient, ClusterMetadata  # type: ignore[attr-defined]  # re-exported without saying so

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.handles import HandleFactory

Isolation = Literal["read_uncommitted", "read_committed"]

_END = -1
_START = -2
_FAST_SHARE = 0.5
"""Of the timeout, what the cheap way may use before the other is tried."""
_DEGRADED_SECONDS = 60.0
_MOST_REQUESTS = 64
"""To one leader in one reading."""
_RENEW_SECONDS = 5.0
"""Least time between two replacements of a handle that knows too few partitions."""
_WHOLE = frozenset({ErrorKind.AUTHENTICATION, ErrorKind.TLS, ErrorKind.INVALID_CONFIG})
"""Failures that no other way of asking gets around."""


@dataclass(frozen=True, slots=True)
class OffsetReading:
    """Offsets of partitions as of one moment between `requested_at` and `answered_at`.

    Each partition asked for is in exactly one of `offsets` and `errors`.
    """

    offsets: dict[TopicPartition, int]
    errors: dict[TopicPartition, ErrorKind]
    requested_at: float
    answered_at: float


class OffsetReader:
    """Reads offsets at one isolation level. Thread-safe: calls take turns."""

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
        """End offsets: the high watermark, or the last stable offset for read_committed."""
        return self._read(partitions, _END, timeout, "reading end offsets")

    def read_start(self, partitions: Sequence[TopicPartition], timeout: float) -> OffsetReading:
        """Log start offsets."""
        return self._read(partitions, _START, timeout, "reading start offsets")

    def read_at(
        self, partitions: Sequence[TopicPartition], timestamp: float, timeout: float
    ) -> OffsetReading:
        """The first offset at or after a time (epoch seconds); the end where no record is."""
        if timestamp < 0:
            raise ValueError(f"timestamp {timestamp} is before 1970: expected epoch seconds")
        moment = int(timestamp * 1000)
        reading = self._read_by_time(partitions, moment, timeout)
        later = [partition for partition, offset in reading.offsets.items() if offset < 0]
        if not later:
            return reading
        # First the ends, then a second look: a record that came between the first look and its
        # end would be passed over.
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
        """Close the consumer."""
        with self._lock:
            self._drop_consumer()

    def _read_by_time(
        self, partitions: Sequence[TopicPartition], moment: int, timeout: float
    ) -> OffsetReading:
        """As Kafka answers: -1 where no record is at or after the time."""
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
            raw = self._raw_partitions(wanted, moment)
            if time.monotonic() >= self._degraded_until:
                try:
                    return self._read_at_once(
                        wanted, raw, _lowest(moment), timeout * _FAST_SHARE, requested_at
                    )
                except KafkaException as error:
                    problem = self._handles.problem(error, operation)
                    if problem.kind in _WHOLE:
                        raise problem from None
                    if problem.kind is ErrorKind.UNKNOWN_TOPIC:
                        return self._none_readable(wanted, deadline, requested_at)
                    self._degraded_until = time.monotonic() + _DEGRADED_SECONDS
            requested_at = self._clock()
            with self._handles.errors(operation, answered=True):
                return self._read_each(wanted, raw, moment, deadline, requested_at)

    def _read_at_once(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        lowest: int,
        timeout: float,
        requested_at: float,
    ) -> OffsetReading:
        reading = self._ask(wanted, raw, lowest, timeout, requested_at)
        if self._knows_too_few(reading):
            reading = self._ask(wanted, raw, lowest, timeout, requested_at)
        return reading

    def _ask(
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
        self._handles.causes.forget()
        if [(found.topic, found.partition) for found in results] != list(wanted):
            raise RuntimeError("librdkafka answered for other partitions than it was asked for")
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

    def _knows_too_few(self, reading: OffsetReading) -> bool:
        """Drop a consumer that does not know a topic's newer partitions; True when it did.

        librdkafka trusts its metadata of a topic for minutes and asks no broker about a partition
        that is not in there. A new handle starts with what is true now.
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

    def _read_each(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        moment: int,
        deadline: float,
        requested_at: float,
    ) -> OffsetReading:
        """Ask each leader for its own, so that one that is down takes nothing from the others."""
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
            for part in self._ask_halves(
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

    def _ask_halves(
        self,
        wanted: tuple[TopicPartition, ...],
        raw: list[RawPartition],
        lowest: int,
        deadline: float,
        requested_at: float,
    ) -> Iterator[OffsetReading | tuple[KafkaException, tuple[TopicPartition, ...]]]:
        """Ask one leader; where it refuses a partition, and so all, ask for each half again.

        A topic that was just created is refused for a moment. Answers and failures together
        cover *wanted*; the number of requests is bounded whatever is refused.
        """
        waiting = [(wanted, raw)]
        for _ in range(_MOST_REQUESTS):
            if not waiting:
                return
            part, its_raw = waiting.pop()
            try:
                remaining = max(deadline - time.monotonic(), 0.1)
                yield self._ask(part, its_raw, lowest, remaining, requested_at)
            except KafkaException as failure:
                refused = failure.args[0].code() > 0
                if not refused or len(part) == 1 or time.monotonic() > deadline:
                    yield failure, part
                    continue
                half = len(part) // 2
                waiting += [(part[half:], its_raw[half:]), (part[:half], its_raw[:half])]
                last = failure
        for part, _its_raw in waiting:
            yield last, part

    def _describe(self, timeout: float) -> ClusterMetadata:
        admin = self._admin()
        try:
            return admin.list_topics(timeout=timeout)
        finally:
            admin.poll(0)

    def _none_readable(
        self, wanted: tuple[TopicPartition, ...], deadline: float, requested_at: float
    ) -> OffsetReading:
        """Tell apart what librdkafka calls unknown when no partition at all has a leader."""
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

    def _raw_partitions(
        self, wanted: tuple[TopicPartition, ...], moment: int
    ) -> list[RawPartition]:
        held = self._raw.get(moment)
        if held is not None and held[0] == wanted:
            return held[1]
        raw = [RawPartition(topic, partition, moment) for topic, partition in wanted]
        if moment < 0:  # a time is rarely asked for twice
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
    """The broker that leads *partition*, or why none does."""
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
    """The lowest valid answer: -1 says that no record is at or after a time (KIP-79)."""
    return 0 if moment < 0 else -1


def _kind(error: KafkaError | None) -> ErrorKind:
    return ErrorKind.TIMEOUT if error is None else kind_of(error)
