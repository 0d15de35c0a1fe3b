"""The first data record at or after an offset, for many partitions at once.

Transaction markers, aborted records and compacted records take up offsets too, so an offset
difference does not prove that there is a record to read.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import AdminClient

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_metadata import SHORTEST_REQUEST_SECONDS, identify_topics
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, kind_of
from mm2slo_kafka.partition_offsets import Isolation

_OPERATION = "reading first records"
_BATCH = 500
_SLICE_SECONDS = 0.5
_RECYCLE_CALLS = 200

ANY_ANSWER = (OFFSET_BEGINNING, OFFSET_BEGINNING + 1)
"""A range that every record and the end of an empty log are beyond: any fetch that is allowed ends
its read."""

_SETTINGS: dict[str, str] = {
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
    # One record per partition is needed; brokers return at least one batch whatever the limit.
    "fetch.message.max.bytes": "4096",
    "queued.min.messages": "1",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "5",
    "fetch.error.backoff.ms": "100",
    "fetch.wait.max.ms": "20",
}


class FirstRecord(NamedTuple):
    """A data record's offset and time; `timestamp_ms` is None for records without one (v0)."""

    offset: int
    timestamp_ms: int | None


@dataclass(slots=True)
class FirstRecords:
    """Results per partition; each requested partition is in exactly one of the two.

    `found` holds None where the range has no data record: only compacted records, transaction
    markers, or (read_committed) aborted records. If the range starts below the log start, the
    result is the first remaining record.
    """

    found: dict[TopicPartition, FirstRecord | None] = field(default_factory=dict)
    failures: dict[TopicPartition, ErrorKind] = field(default_factory=dict)
    """`TIMEOUT` for what was not answered in time, `OTHER` for a log that ends before the range: an
    open transaction (read_committed), or truncation."""


class FirstRecordReader:
    """Reads first records at one isolation level. Thread-safe: calls are serialised."""

    def __init__(
        self, handles: HandleFactory, admin: Callable[[], AdminClient], isolation: Isolation
    ) -> None:
        self._handles = handles
        self._admin = admin
        self._isolation: Isolation = isolation
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._calls = 0

    def read(
        self, ranges: Mapping[TopicPartition, tuple[int, int]], timeout: float
    ) -> FirstRecords:
        """Read [offset, end) of each partition until all have a result or *timeout* expires."""
        answers = FirstRecords()
        pending = {}
        for partition, (offset, end) in ranges.items():
            if offset < end:
                pending[partition] = (offset, end)
            else:
                answers.found[partition] = None
        if pending:
            self._handles.check_login(_OPERATION)
            with self._lock:
                self._read(pending, answers, time.monotonic() + timeout)
        return answers

    def close(self, *, wait: bool = True) -> None:
        """Close the consumer; without *wait*, unless it is in use."""
        if self._lock.acquire(blocking=wait):
            self._drop()
            self._lock.release()

    def _read(
        self,
        pending: dict[TopicPartition, tuple[int, int]],
        answers: FirstRecords,
        deadline: float,
    ) -> None:
        with self._handles.errors(_OPERATION):
            consumer = self._open()
            consumer.assign(
                [
                    RawPartition(topic, number, offset)
                    for (topic, number), (offset, _end) in pending.items()
                ]
            )
            try:
                check_existence = True
                while pending and (remaining := deadline - time.monotonic()) > 0:
                    messages = take_available(consumer, _BATCH, min(remaining, _SLICE_SECONDS))
                    if messages:
                        self._handles.last_error.clear()
                    elif check_existence:
                        check_existence = False
                        self._drop_unknown(pending, answers, deadline)
                    done = [
                        settled
                        for message in messages
                        if (settled := _settle_partition(message, pending, answers)) is not None
                    ]
                    if done and pending:
                        consumer.incremental_unassign(done)
            finally:
                consumer.unassign()
        for partition in pending:
            answers.failures[partition] = ErrorKind.TIMEOUT

    def _drop_unknown(
        self,
        pending: dict[TopicPartition, tuple[int, int]],
        answers: FirstRecords,
        deadline: float,
    ) -> None:
        """Fail topics that do not exist: a consumer waits for them without an error."""
        remaining = deadline - time.monotonic()
        if remaining < SHORTEST_REQUEST_SECONDS:
            return
        topics = dict.fromkeys(topic for topic, _partition in pending)
        try:
            _known, errors = identify_topics(self._handles, self._admin(), topics, remaining)
        except KafkaOperationError:
            if not answers.found:
                raise
            return  # the controller is unreachable, but leaders answer
        for partition in [each for each in pending if each.topic in errors]:
            answers.failures[partition] = errors[partition.topic]
            del pending[partition]

    def _open(self) -> Consumer:
        # A handle keeps metadata of every topic it ever read, so it is replaced regularly.
        if self._calls >= _RECYCLE_CALLS:
            self._drop()
        self._calls += 1
        if self._consumer is None:
            # Statistics would list every partition ever assigned: megabytes per report.
            self._consumer = self._handles.consumer(
                {**_SETTINGS, "isolation.level": self._isolation}, statistics=False
            )
        return self._consumer

    def _drop(self) -> None:
        self._calls = 0
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _settle_partition(
    message: Message,
    pending: dict[TopicPartition, tuple[int, int]],
    answers: FirstRecords,
) -> RawPartition | None:
    """Store the result that a message gives for its partition; returns it to be unassigned."""
    topic, number, offset = message.topic(), message.partition(), message.offset()
    if topic is None or number is None:
        return None  # not about a partition: connection errors are in `last_error`
    partition = TopicPartition(topic, number)
    wanted = pending.get(partition)
    if wanted is None:
        return None
    first, end = wanted
    error = message.error()
    if error is not None:
        if error.code() == KafkaError._PARTITION_EOF:
            if offset is not None and offset >= end:
                answers.found[partition] = None
            else:
                answers.failures[partition] = ErrorKind.OTHER
        elif error.retriable():
            return None
        else:
            answers.failures[partition] = kind_of(error)
    elif offset is None or offset < first:
        # The consumer was reset to the earliest record: the offset was beyond the end.
        answers.failures[partition] = ErrorKind.OFFSET_OUT_OF_RANGE
    elif offset >= end:
        answers.found[partition] = None
    else:
        answers.found[partition] = _record(message, offset)
    del pending[partition]
    return RawPartition(topic, number)


def _record(message: Message, offset: int) -> FirstRecord:
    kind, timestamp_ms = message.timestamp()
    return FirstRecord(offset, timestamp_ms if kind else None)  # 0: TIMESTAMP_NOT_AVAILABLE


def take_available(consumer: Consumer, max_messages: int, timeout: float) -> list[Message]:
    """Wait up to *timeout* seconds for one message; return it and others already received.

    `Consumer.consume` alone waits for its whole timeout unless *max_messages* are available,
    which would add that time to each arrival. The consumer must not be a member of its group:
    permissions on it do not matter, so that reports of missing ones are left out.
    """
    deadline = time.monotonic() + timeout
    while True:
        first = consumer.poll(max(deadline - time.monotonic(), 0.0))
        if first is None:
            return []
        messages = [first]
        if max_messages > 1:
            messages += consumer.consume(max_messages - 1, timeout=0)
        if relevant := [each for each in messages if not _is_about_group(each)]:
            return relevant


def _is_about_group(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
