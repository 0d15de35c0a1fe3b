"""Reads a topic to its end offset, then follows it."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from confluent_kafka import OFFSET_BEGINNING, KafkaError
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.available_messages import take_available
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka import Consumer, Message

    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation, OffsetReading
    from mm2slo_kafka.topic_metadata import TopicIdentity

Start = Literal["start", "end"] | float
"""Where reading starts; a number is epoch seconds: the first record at or after it."""

_REQUEST_SECONDS = 5.0
_ABSENT_RETRY_SECONDS = 1.0
_SETTINGS: dict[str, str] = {
    "enable.partition.eof": "true",
    # An offset out of range must be reported, not skipped.
    "auto.offset.reset": "error",
    "fetch.error.backoff.ms": "100",
    "fetch.queue.backoff.ms": "10",
    "fetch.message.max.bytes": "1048576",
    "queued.min.messages": "20000",
    "queued.max.messages.kbytes": "8192",
}


class TailState(StrEnum):
    STARTING = "starting"
    """The cluster has not answered yet; it is unknown whether the topic exists."""
    ABSENT = "absent"
    """The topic does not exist; it is read as soon as it does."""
    READING = "reading"


class RestartReason(StrEnum):
    """Why everything read so far is invalid."""

    RECREATED = "recreated"
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"


class Restarted(NamedTuple):
    """The topic is read from its start again; state built from earlier records must be dropped."""

    reason: RestartReason


Headers = list[tuple[str, bytes | None]]
"""Headers in order; a name may occur more than once."""


class TailRecord(NamedTuple):
    """One record as stored. `timestamp_ms` is None for a record without one."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class Batch(NamedTuple):
    """Result of one poll. With `restarted`, clear state first: all `records` come after it."""

    records: list[TailRecord]
    restarted: Restarted | None
    problem: KafkaOperationError | None


class TopicTail:
    """One topic, or one partition of it, read in offset order per partition.

    Not thread-safe. Handles unavailable brokers and topics that are created, deleted, extended
    or re-created. `poll` never raises for cluster errors: they are in `Batch.problem`, and in
    `problem` until a request succeeds.
    """

    def __init__(
        self,
        client: ClusterClient,
        topic: str,
        *,
        partition: int | None = None,
        start: Start = "start",
        isolation: Isolation = "read_uncommitted",
        headers: bool = False,
        refresh_seconds: float = 5.0,
    ) -> None:
        self.topic = topic
        self.problem: KafkaOperationError | None = None
        self.state = TailState.STARTING
        self._client = client
        self._only_partition = partition
        self._start: Start = start
        self._isolation: Isolation = isolation
        self._headers = headers
        self._refresh_seconds = refresh_seconds
        self._consumer: Consumer | None = None
        self._topic_id: str | None = None
        self._positions: dict[int, int | None] = {}
        self._initial_ends: dict[int, int | None] = {}
        self._identifying: Future[TopicIdentity | None] | None = None
        self._identify_at = 0.0
        self._refused = False
        self._restarted: Restarted | None = None

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to the end offset it had at the start."""
        return self.state is TailState.READING and bool(self._positions) and not self._initial_ends

    @property
    def position(self) -> Mapping[int, int | None]:
        """The next offset per partition; None before its broker's first response."""
        return dict(self._positions)

    @property
    def topic_id(self) -> str | None:
        """The id of the topic; None on brokers without topic ids (before 2.8)."""
        return self._topic_id

    def poll(self, max_records: int = 1000, timeout: float = 1.0) -> Batch:
        """Up to *max_records* records; waits up to *timeout* seconds for the first.

        Returns early, without records, when the tail has just caught up.
        """
        deadline = time.monotonic() + timeout
        was_caught_up = self.caught_up
        self._identify(deadline)
        records: list[TailRecord] = []
        if self.state is TailState.READING:
            just_caught_up = self.caught_up and not was_caught_up
            wait = 0.0 if just_caught_up else max(deadline - time.monotonic(), 0.0)
            records = self._take(take_available(self._open(), max_records, wait))
        elif (idle := min(deadline, self._identify_at) - time.monotonic()) > 0:
            time.sleep(idle)
        restarted, self._restarted = self._restarted, None
        return Batch(records, restarted, self.problem)

    def close(self) -> None:
        """Close the consumer; the tail cannot be used afterwards."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # -- records -----------------------------------------------------------------------------

    def _take(self, messages: list[Message]) -> list[TailRecord]:
        records: list[TailRecord] = []
        positions, goals, with_headers = self._positions, self._initial_ends, self._headers
        for message in messages:
            error = message.error()
            if error is not None:
                if self._take_error(message, error):
                    return []
                continue
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None:
                continue
            kind, timestamp_ms = message.timestamp()
            records.append(
                TailRecord(
                    partition,
                    offset,
                    timestamp_ms if kind else None,
                    message.key(),
                    message.value(),
                    _headers(message) if with_headers else None,
                )
            )
            positions[partition] = offset + 1
            if goals and (goal := goals.get(partition)) is not None and offset + 1 >= goal:
                del goals[partition]
        if records:
            self.problem, self._refused = None, False
        return records

    def _take_error(self, message: Message, error: KafkaError) -> bool:
        """Handle an error event; True when it invalidates what was read."""
        partition, offset = message.partition(), message.offset()
        if error.code() == KafkaError._PARTITION_EOF:
            self._refused = False
            if partition is not None and offset is not None:
                self._positions[partition] = offset
                goal = self._initial_ends.get(partition)
                if goal is not None and offset >= goal:
                    del self._initial_ends[partition]
            return False
        kind = kind_of(error)
        if kind is ErrorKind.OFFSET_OUT_OF_RANGE:
            self._restart(RestartReason.OFFSET_OUT_OF_RANGE)
            return True
        if kind is ErrorKind.UNKNOWN_TOPIC:
            self._identify_at = 0.0
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            # Without group membership, missing permissions on the group do not matter.
            self.problem = self._client.handles.problem(error, f"reading topic {self.topic!r}")
            self._refused = kind is ErrorKind.AUTHORIZATION
        return False

    # -- the topic ---------------------------------------------------------------------------

    def _identify(self, deadline: float) -> None:
        """Describe the topic periodically; while it is not being read, wait for the response."""
        if self._identifying is None and time.monotonic() >= self._identify_at:
            try:
                self._identifying = self._client.start_identify(self.topic, _REQUEST_SECONDS)
            except KafkaOperationError as problem:
                self._failed(problem)
        if self._identifying is None:
            return
        try:
            is_blocking = self.state is not TailState.READING
            identity = self._identifying.result(
                max(deadline - time.monotonic(), 0.0) if is_blocking else 0.0
            )
        except TimeoutError:
            return
        except KafkaOperationError as problem:
            self._identifying = None
            self._failed(problem)
            return
        self._identifying = None
        self._identify_at = time.monotonic() + self._refresh_seconds
        try:
            self._apply_identity(identity)
            if not self._refused:
                self.problem = None
        except KafkaOperationError as problem:
            self._failed(problem)

    def _failed(self, problem: KafkaOperationError) -> None:
        self.problem = problem
        self._identify_at = time.monotonic() + _ABSENT_RETRY_SECONDS

    def _apply_identity(self, identity: TopicIdentity | None) -> None:
        """Read the partitions that exist now."""
        if identity is None:
            if self.state is TailState.READING:
                self._open().unassign()
            self.state = TailState.ABSENT
            self._identify_at = time.monotonic() + _ABSENT_RETRY_SECONDS
            return
        if self._topic_id not in (None, identity.topic_id):
            self._restart(RestartReason.RECREATED)
        self._topic_id = identity.topic_id
        partitions = (
            range(identity.partitions) if self._only_partition is None else (self._only_partition,)
        )
        new = [partition for partition in partitions if partition not in self._positions]
        if new:
            self._add_partitions(new)
        # Who may describe the topic may still not read it, which librdkafka reports once per
        # assignment.
        if new or self._refused or self.state is not TailState.READING:
            self._assign()
        self._resolve_initial_ends()

    def _restart(self, reason: RestartReason) -> None:
        """Drop all positions; the topic is then read from its start again."""
        if self._consumer is not None:
            self._consumer.unassign()
        self._restarted = Restarted(reason)
        self._start = "start"
        self._positions, self._initial_ends = {}, {}
        self.state = TailState.STARTING
        self._topic_id = None
        self._identify_at = 0.0

    def _add_partitions(self, new: list[int]) -> None:
        partitions = [TopicPartition(self.topic, partition) for partition in new]
        # Partitions that were added later are read from their start: all records are new.
        start: Start = "start" if self._positions else self._start
        if start == "start":
            # One request for all offsets; lookups by the consumer, one per partition, would
            # delay the first records behind fetches of empty partitions.
            starts = self._client.start_offsets(partitions, _REQUEST_SECONDS).offsets
        elif start == "end":
            starts = self._require_offsets(self._ends(partitions))
        else:
            starts = self._require_offsets(
                self._client.offsets_at(partitions, start, self._isolation, _REQUEST_SECONDS)
            )
        for partition in partitions:
            self._positions[partition.partition] = starts.get(partition)
            self._initial_ends[partition.partition] = None

    def _assign(self) -> None:
        with self._client.handles.errors(f"reading topic {self.topic!r}", answered=True):
            consumer = self._open()
            # A partition assigned before its leader is known waits a second for its leader.
            consumer.list_topics(self.topic, timeout=_REQUEST_SECONDS)
            consumer.assign(
                [
                    RawPartition(
                        self.topic, partition, OFFSET_BEGINNING if position is None else position
                    )
                    for partition, position in self._positions.items()
                ]
            )
        self.state = TailState.READING

    def _resolve_initial_ends(self) -> None:
        """Read the initial end offsets that are unknown; drop those that were reached."""
        unknown = [
            TopicPartition(self.topic, partition)
            for partition, goal in self._initial_ends.items()
            if goal is None
        ]
        if not unknown:
            return
        for topic_partition, end in self._ends(unknown).offsets.items():
            partition = topic_partition.partition
            if (self._positions.get(partition) or 0) >= end:
                del self._initial_ends[partition]
            else:
                self._initial_ends[partition] = end

    def _ends(self, partitions: Sequence[TopicPartition]) -> OffsetReading:
        return self._client.end_offsets(partitions, self._isolation, _REQUEST_SECONDS)

    def _require_offsets(self, reading: OffsetReading) -> dict[TopicPartition, int]:
        """The offsets of a reading; raises KafkaOperationError for its first error."""
        for partition, kind in reading.errors.items():
            raise KafkaOperationError(
                kind,
                cluster=self._client.handles.alias,
                operation=f"reading the start offset of {partition}",
                detail="its leader returned no offset",
            )
        return reading.offsets

    def _open(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._client.handles.consumer(
                {**_SETTINGS, "isolation.level": self._isolation}
            )
        return self._consumer


def _headers(message: Message) -> Headers:
    # The client's type also covers what producers accept; consumed headers are a list.
    return cast("Headers", message.headers() or [])
