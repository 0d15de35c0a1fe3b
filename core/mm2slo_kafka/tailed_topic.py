"""How far a topic has been read; without I/O."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Self, cast

from confluent_kafka import Message

from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

Start = Literal["start", "end"] | float
"""Where reading starts; a number is epoch seconds: the first record at or after it."""


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

    @classmethod
    def of(cls, message: Message, *, with_headers: bool) -> Self:
        """The record of a consumed *message* without an error."""
        kind, timestamp_ms = message.timestamp()
        return cls(
            cast("int", message.partition()),
            cast("int", message.offset()),
            timestamp_ms if kind else None,  # 0: TIMESTAMP_NOT_AVAILABLE
            message.key(),
            message.value(),
            # The client's type also covers what producers accept; consumed headers are a list.
            cast("Headers", message.headers() or []) if with_headers else None,
        )

    @property
    def written_at(self) -> float:
        """When it was written, in epoch seconds; 0 if that is unknown."""
        return (self.timestamp_ms or 0) / 1000


class TailBatch(NamedTuple):
    """Result of one poll. With `restarted`, clear state first: all `records` come after it."""

    records: list[TailRecord]
    restarted: Restarted | None
    problem: KafkaOperationError | None


class TopicDescription(NamedTuple):
    identity: TopicIdentity | None
    """None if the topic does not exist."""
    starts: Mapping[int, int | None]
    """Where to start reading partitions that are not read yet; None: at their log start."""
    ends: Mapping[int, int]
    """Their end offsets, and those of partitions whose initial end is unknown."""


class TailedTopic:
    """State of one topic that is read from *start* on."""

    def __init__(self, topic: str, *, start: Start = "start") -> None:
        self.topic = topic
        self.start: Start = start
        self.problem: KafkaOperationError | None = None
        self.state = TailState.STARTING
        self.absent_lookups = 0
        """How many lookups in succession have not found it."""
        self.topic_id: str | None = None
        """None on brokers without topic ids (before 2.8)."""
        self.positions: dict[int, int | None] = {}
        """The next offset per partition; None before its broker's first response."""
        self.is_refused = False
        """Whether the broker refuses to return records, which it reports once per assignment."""
        self._initial_ends: dict[int, int | None] = {}
        self._restarted: Restarted | None = None

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to the end offset it had at the start."""
        return self.state is TailState.READING and bool(self.positions) and not self._initial_ends

    @property
    def unknown_ends(self) -> Sequence[int]:
        return [partition for partition, end in self._initial_ends.items() if end is None]

    def awaits_initial_end(self, partition: int) -> bool:
        """Whether a partition has records that it had at the start and that were not read yet."""
        return partition in self._initial_ends

    def describe(self, found: TopicDescription) -> None:
        """Take a description; the partitions to read are then those of `positions`."""
        identity = found.identity
        if identity is None:
            self.state = TailState.ABSENT
            self.absent_lookups += 1
        else:
            self.absent_lookups = 0
            # Only the id (KIP-516) shows that a topic was re-created: the new one may already have
            # passed the offset up to which the old one was read.
            if self.topic_id not in (None, identity.topic_id):
                self.restart(RestartReason.RECREATED)
            self.topic_id = identity.topic_id
            for partition, start in found.starts.items():
                if partition not in self.positions:
                    self.positions[partition], self._initial_ends[partition] = start, None
            for partition, end in found.ends.items():
                self._take_initial_end(partition, end)
            self.state = TailState.READING
        if not self.is_refused:
            self.problem = None

    def restart(self, reason: RestartReason) -> None:
        """Drop all positions; the topic is then read from its start again."""
        self._restarted = Restarted(reason)
        self.start = "start"
        self.positions, self._initial_ends = {}, {}
        self.state = TailState.STARTING
        self.topic_id = None

    def take(self, partition: int, offset: int) -> None:
        self.positions[partition] = offset + 1
        if self._initial_ends:
            self._reach(partition, offset + 1)
        self.problem, self.is_refused = None, False

    def take_end(self, partition: int, offset: int) -> None:
        """Take the offset at which a partition has no further record."""
        self.is_refused = False
        # Beyond the last record that was returned: markers of transactions, aborted and compacted
        # records take offsets that no consumer gets.
        self.positions[partition] = offset
        self._reach(partition, offset)

    def fail(self, problem: KafkaOperationError) -> None:
        self.problem = problem
        self.is_refused = problem.kind is ErrorKind.AUTHORIZATION

    def take_restart(self) -> Restarted | None:
        """The restart since the last call."""
        restarted, self._restarted = self._restarted, None
        return restarted

    def _take_initial_end(self, partition: int, end: int) -> None:
        if self._initial_ends.get(partition, end) is None:
            self._initial_ends[partition] = end
            self._reach(partition, self.positions[partition] or 0)

    def _reach(self, partition: int, offset: int) -> None:
        end = self._initial_ends.get(partition)
        if end is not None and offset >= end:
            del self._initial_ends[partition]
