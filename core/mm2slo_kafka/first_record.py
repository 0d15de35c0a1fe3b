"""The first data record at or after an offset, for many partitions at once.

Offsets are also taken by transaction markers, aborted records and records that compaction
removed, so an offset difference does not tell that there is anything to read.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.consuming import take_available
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError, kind_of
from mm2slo_kafka.metadata import identify_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Consumer, Message
    from confluent_kafka.admin import AdminClient

    from mm2slo_kafka.handles import HandleFactory
    from mm2slo_kafka.offsets import Isolation

_OPERATION = "reading first records"
_BATCH = 500
_SLICE_SECONDS = 0.5
_RECYCLE_CALLS = 200
_SETTINGS: dict[str, str] = {
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
    # One record per partition is wanted: the broker gives at least one batch whatever the limit.
    "fetch.message.max.bytes": "4096",
    "queued.min.messages": "1",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "5",
    "fetch.error.backoff.ms": "100",
    "fetch.wait.max.ms": "20",
}


class TimestampType(StrEnum):
    """Who stamped a record: its producer or the broker that appended it."""

    CREATE_TIME = "create_time"
    LOG_APPEND_TIME = "log_append_time"


class FirstRecord(NamedTuple):
    """A data record's place and time; `timestamp_ms` is None for records without one (v0)."""

    offset: int
    timestamp_ms: int | None
    timestamp_type: TimestampType | None


class Unfinished(StrEnum):
    """Why a partition got no answer."""

    DEADLINE = "deadline"
    NOT_VISIBLE = "not_visible"
    """The log ends before the range does: an open transaction (read_committed), or truncation."""
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"
    """The offset lies beyond the log's end: truncated, or created anew."""
    UNKNOWN_TOPIC = "unknown_topic"
    AUTHORIZATION = "authorization"
    ERROR = "error"


@dataclass(slots=True)
class FirstRecords:
    """Answers per partition. Each partition asked for is in exactly one of the two.

    `found` holds None where no data record exists in the range: all compacted, markers, or
    (read_committed) aborted. Where the range starts below the log start, the answer is the
    first record that is left.
    """

    found: dict[TopicPartition, FirstRecord | None] = field(default_factory=dict)
    unfinished: dict[TopicPartition, Unfinished] = field(default_factory=dict)

    def one(self, partition: TopicPartition, cluster: str) -> FirstRecord | None:
        """The answer for one partition; raises KafkaOperationError where there is none."""
        reason = self.unfinished.get(partition)
        if reason is None:
            return self.found[partition]
        raise KafkaOperationError(
            _KIND_OF_REASON.get(reason, ErrorKind.OTHER),
            cluster=cluster,
            operation=f"reading the first record of {partition}",
            detail=reason,
        )


_KIND_OF_REASON = {
    Unfinished.DEADLINE: ErrorKind.TIMEOUT,
    Unfinished.OFFSET_OUT_OF_RANGE: ErrorKind.OFFSET_OUT_OF_RANGE,
    Unfinished.UNKNOWN_TOPIC: ErrorKind.UNKNOWN_TOPIC,
    Unfinished.AUTHORIZATION: ErrorKind.AUTHORIZATION,
}
_REASON_OF_KIND = {
    ErrorKind.UNKNOWN_TOPIC: Unfinished.UNKNOWN_TOPIC,
    ErrorKind.AUTHORIZATION: Unfinished.AUTHORIZATION,
    ErrorKind.OFFSET_OUT_OF_RANGE: Unfinished.OFFSET_OUT_OF_RANGE,
}


class FirstRecordReader:
    """Reads first records at one isolation level. Thread-safe: calls take turns."""

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
        """Look into [offset, end) of each partition until all are answered or time is up."""
        answers = FirstRecords()
        pending = {}
        for partition, (offset, end) in ranges.items():
            if offset < end:
                pending[partition] = (offset, end)
            else:
                answers.found[partition] = None
        if pending:
            with self._lock:
                self._read(pending, answers, time.monotonic() + timeout)
        return answers

    def close(self) -> None:
        """Close the consumer."""
        with self._lock:
            self._drop()

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
                suspicious = True
                while pending and (remaining := deadline - time.monotonic()) > 0:
                    messages = take_available(consumer, _BATCH, min(remaining, _SLICE_SECONDS))
                    if messages:
                        self._handles.causes.forget()
                    elif suspicious:
                        suspicious = False
                        self._drop_unknown(pending, answers, deadline)
                    done = [
                        found
                        for message in messages
                        if (found := _digest(message, pending, answers)) is not None
                    ]
                    if done and pending:
                        consumer.incremental_unassign(done)
            finally:
                consumer.unassign()
        for partition in pending:
            answers.unfinished[partition] = Unfinished.DEADLINE

    def _drop_unknown(
        self,
        pending: dict[TopicPartition, tuple[int, int]],
        answers: FirstRecords,
        deadline: float,
    ) -> None:
        """Give up topics that do not exist: a consumer waits for them without a word."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return
        topics = dict.fromkeys(topic for topic, _partition in pending)
        try:
            _known, errors = identify_topics(self._handles, self._admin(), topics, remaining)
        except KafkaOperationError:
            if not answers.found:
                raise
            return  # the controller is away, but leaders answer
        for partition in [found for found in pending if found.topic in errors]:
            kind = errors[partition.topic]
            answers.unfinished[partition] = _REASON_OF_KIND.get(kind, Unfinished.ERROR)
            del pending[partition]

    def _open(self) -> Consumer:
        # A handle keeps every topic it ever saw: it is replaced before that grows.
        if self._calls >= _RECYCLE_CALLS:
            self._drop()
        self._calls += 1
        if self._consumer is None:
            # Statistics would list every partition ever assigned: megabytes each.
            self._consumer = self._handles.consumer(
                {**_SETTINGS, "isolation.level": self._isolation}, statistics=False
            )
        return self._consumer

    def _drop(self) -> None:
        self._calls = 0
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _digest(
    message: Message,
    pending: dict[TopicPartition, tuple[int, int]],
    answers: FirstRecords,
) -> RawPartition | None:
    """Settle the message's partition if it can be; returns it for being unassigned."""
    topic, number, offset = message.topic(), message.partition(), message.offset()
    if topic is None or number is None:
        return None  # speaks of no partition: lost connections are in the cause memory
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
                answers.unfinished[partition] = Unfinished.NOT_VISIBLE
        elif error.retriable():
            return None
        else:
            answers.unfinished[partition] = _REASON_OF_KIND.get(kind_of(error), Unfinished.ERROR)
    elif offset is None or offset < first:
        # Reset to the earliest record, below what was asked: the offset was beyond the end.
        answers.unfinished[partition] = Unfinished.OFFSET_OUT_OF_RANGE
    elif offset >= end:
        answers.found[partition] = None
    else:
        answers.found[partition] = _record(message, offset)
    del pending[partition]
    return RawPartition(topic, number)


def _record(message: Message, offset: int) -> FirstRecord:
    kind, timestamp_ms = message.timestamp()
    if kind == 0:  # TIMESTAMP_NOT_AVAILABLE
        return FirstRecord(offset, None, None)
    return FirstRecord(
        offset,
        timestamp_ms,
        TimestampType.LOG_APPEND_TIME
        if kind == TIMESTAMP_LOG_APPEND_TIME
        else TimestampType.CREATE_TIME,
    )
