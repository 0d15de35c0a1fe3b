"""Reads a topic to the end it had at first, then follows it."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from confluent_kafka import OFFSET_BEGINNING, KafkaError
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.consuming import take_available
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka import Consumer, Message

    from mm2slo_kafka.client import ClusterClient
    from mm2slo_kafka.metadata import TopicIdentity
    from mm2slo_kafka.offsets import Isolation, OffsetReading

Start = Literal["start", "end"] | float
"""Where reading starts; a number is epoch seconds: the first record at or after it."""

_REQUEST_SECONDS = 5.0
_ABSENT_RETRY_SECONDS = 1.0
_SETTINGS: dict[str, str] = {
    "enable.partition.eof": "true",
    # A lost position is an event that the reader must hear of, not something to jump over.
    "auto.offset.reset": "error",
    "fetch.error.backoff.ms": "100",
    "fetch.queue.backoff.ms": "10",
    "fetch.message.max.bytes": "1048576",
    "queued.min.messages": "20000",
    "queued.max.messages.kbytes": "8192",
}


class TailState(StrEnum):
    """What a tail is doing."""

    STARTING = "starting"
    """The cluster has not answered yet: whether the topic exists is unknown."""
    ABSENT = "absent"
    """The topic does not exist; it is read as soon as it does."""
    READING = "reading"


class RestartReason(StrEnum):
    """Why everything read so far is void."""

    RECREATED = "recreated"
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"


class Restarted(NamedTuple):
    """The topic is read from its start again; what was made of it before is to be dropped."""

    reason: RestartReason


Headers = list[tuple[str, bytes | None]]
"""Headers in their order; a name may occur again."""


class TailRecord(NamedTuple):
    """One record as stored. `timestamp_ms` is None where the record has none."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class Batch(NamedTuple):
    """What one poll brought. With `restarted`, clear first: all `records` come after it."""

    records: list[TailRecord]
    restarted: Restarted | None
    problem: KafkaOperationError | None


class TopicTail:
    """One topic, or one partition of it, read in offset order per partition.

    Belongs to one thread. Survives brokers that go away and topics that come, go, grow or are
    created anew. `poll` never raises for the cluster's sake: a failure is in `Batch.problem`
    and in `problem` until something succeeds.
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
        self._only = partition
        self._start: Start = start
        self._isolation: Isolation = isolation
        self._headers = headers
        self._refresh_seconds = refresh_seconds
        self._consumer: Consumer | None = None
        self._topic_id: str | None = None
        self._positions: dict[int, int | None] = {}
        self._goals: dict[int, int | None] = {}
        self._identifying: Future[TopicIdentity | None] | None = None
        self._identify_at = 0.0
        self._restarted: Restarted | None = None

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to the end it had when reading started."""
        return self.state is TailState.READING and bool(self._positions) and not self._goals

    @property
    def position(self) -> Mapping[int, int | None]:
        """The next offset per partition; None before the first answer of its broker."""
        return dict(self._positions)

    @property
    def topic_id(self) -> str | None:
        """The id of the topic being read; None where brokers have no ids (before 2.8)."""
        return self._topic_id

    def poll(self, max_records: int = 1000, timeout: float = 1.0) -> Batch:
        """Up to *max_records* records; waits up to *timeout* seconds for the first.

        Comes back sooner, without records, when a partition's end is reached.
        """
        deadline = time.monotonic() + timeout
        was_caught_up = self.caught_up
        self._identify(deadline)
        records: list[TailRecord] = []
        if self.state is TailState.READING:
            news = self.caught_up and not was_caught_up
            wait = 0.0 if news else max(deadline - time.monotonic(), 0.0)
            records = self._take(take_available(self._open(), max_records, wait))
        elif (idle := min(deadline, self._identify_at) - time.monotonic()) > 0:
            time.sleep(idle)
        restarted, self._restarted = self._restarted, None
        return Batch(records, restarted, self.problem)

    def close(self) -> None:
        """Close the consumer; the tail is of no use afterwards."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # -- records -----------------------------------------------------------------------------

    def _take(self, messages: list[Message]) -> list[TailRecord]:
        records: list[TailRecord] = []
        positions, goals, with_headers = self._positions, self._goals, self._headers
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
            self.problem = None
        return records

    def _take_error(self, message: Message, error: KafkaError) -> bool:
        """Act on an event; True when it voids what was read."""
        partition, offset = message.partition(), message.offset()
        if error.code() == KafkaError._PARTITION_EOF:
            if partition is not None and offset is not None:
                self._positions[partition] = offset
                goal = self._goals.get(partition)
                if goal is not None and offset >= goal:
                    del self._goals[partition]
            return False
        kind = kind_of(error)
        if kind is ErrorKind.OFFSET_OUT_OF_RANGE:
            self._restart(RestartReason.OFFSET_OUT_OF_RANGE)
            return True
        if kind is ErrorKind.UNKNOWN_TOPIC:
            self._identify_at = 0.0
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            # Without group membership, the group's permissions stand in the way of nothing.
            self.problem = self._client.handles.problem(error, f"reading topic {self.topic!r}")
        return False

    # -- the topic ---------------------------------------------------------------------------

    def _identify(self, deadline: float) -> None:
        """Look at the topic from time to time; before the first answer, wait for it."""
        if self._identifying is None and time.monotonic() >= self._identify_at:
            try:
                self._identifying = self._client.begin_identify(self.topic, _REQUEST_SECONDS)
            except KafkaOperationError as problem:
                self._failed(problem)
        if self._identifying is None:
            return
        try:
            waits = self.state is not TailState.READING
            identity = self._identifying.result(
                max(deadline - time.monotonic(), 0.0) if waits else 0.0
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
            self._follow(identity)
            self.problem = None
        except KafkaOperationError as problem:
            self._failed(problem)

    def _failed(self, problem: KafkaOperationError) -> None:
        self.problem = problem
        self._identify_at = time.monotonic() + _ABSENT_RETRY_SECONDS

    def _follow(self, identity: TopicIdentity | None) -> None:
        """Bring what is read into line with what exists."""
        if identity is None:
            if self.state is TailState.READING:
                self._open().unassign()
            self.state = TailState.ABSENT
            self._identify_at = time.monotonic() + _ABSENT_RETRY_SECONDS
            return
        if self._topic_id not in (None, identity.topic_id):
            self._restart(RestartReason.RECREATED)
        self._topic_id = identity.topic_id
        partitions = range(identity.partitions) if self._only is None else (self._only,)
        new = [partition for partition in partitions if partition not in self._positions]
        if new:
            self._begin(new)
        if new or self.state is not TailState.READING:
            self._assign()
        self._resolve_goals()

    def _restart(self, reason: RestartReason) -> None:
        """Void what was read; the next look at the topic starts again from its start."""
        if self._consumer is not None:
            self._consumer.unassign()
        self._restarted = Restarted(reason)
        self._start = "start"
        self._positions, self._goals = {}, {}
        self.state = TailState.STARTING
        self._topic_id = None
        self._identify_at = 0.0

    def _begin(self, new: list[int]) -> None:
        """Find out where to start, and the end that makes up the past."""
        partitions = [TopicPartition(self.topic, partition) for partition in new]
        # Partitions that were added later hold nothing but what is new: read all of it.
        start: Start = "start" if self._positions else self._start
        if start == "start":
            # Known offsets are fetched together; looking them up one by one in the consumer
            # makes the first answers wait for a fetch that has nothing to give.
            starts = self._client.start_offsets(partitions, _REQUEST_SECONDS).offsets
        elif start == "end":
            starts = self._sound(self._ends(partitions))
        else:
            starts = self._sound(
                self._client.offsets_at(partitions, start, self._isolation, _REQUEST_SECONDS)
            )
        for partition in partitions:
            self._positions[partition.partition] = starts.get(partition)
            self._goals[partition.partition] = None

    def _assign(self) -> None:
        with self._client.handles.errors(f"reading topic {self.topic!r}", answered=True):
            consumer = self._open()
            # Partitions assigned before their leader is known wait a second for the next look.
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

    def _resolve_goals(self) -> None:
        """Learn the ends that are still unknown; what is already behind us is no goal."""
        unknown = [
            TopicPartition(self.topic, partition)
            for partition, goal in self._goals.items()
            if goal is None
        ]
        if not unknown:
            return
        for topic_partition, end in self._ends(unknown).offsets.items():
            partition = topic_partition.partition
            if (self._positions.get(partition) or 0) >= end:
                del self._goals[partition]
            else:
                self._goals[partition] = end

    def _ends(self, partitions: Sequence[TopicPartition]) -> OffsetReading:
        return self._client.end_offsets(partitions, self._isolation, _REQUEST_SECONDS)

    def _sound(self, reading: OffsetReading) -> dict[TopicPartition, int]:
        """The offsets of a reading that has no errors; raises KafkaOperationError for the first."""
        for partition, kind in reading.errors.items():
            raise KafkaOperationError(
                kind,
                cluster=self._client.handles.alias,
                operation=f"finding where to start in {partition}",
                detail="its leader gave no offset",
            )
        return reading.offsets

    def _open(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._client.handles.consumer(
                {**_SETTINGS, "isolation.level": self._isolation}
            )
        return self._consumer


def _headers(message: Message) -> Headers:
    # The client's type allows what producers may pass in; what it reads is a list of bytes.
    return cast("Headers", message.headers() or [])
