"""Reads topics to their end offsets, then follows them.

`TopicTail` reads one topic. `SharedTail` reads several for several followers: a topic is read once
for all of them, and from its start again for one that follows it later; the others skip what they
have taken. Both use a `TailGroup`, which reads all its topics with one consumer and looks them up
in the background, one lookup at a time.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.first_records import take_available
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, call_in_background, kind_of
from mm2slo_kafka.partition_offsets import Isolation, OffsetReading
from mm2slo_kafka.tailed_topic import (
    Restarted,
    RestartReason,
    Start,
    TailBatch,
    TailedTopic,
    TailRecord,
    TailState,
    TopicDescription,
)


class TopicTail:
    """One topic that is read with a consumer of its own; see `TailGroup`."""

    def __init__(
        self,
        client: ClusterClient,
        topic: str,
        *,
        start: Start = "start",
        isolation: Isolation = "read_uncommitted",
        headers: bool = False,
        refresh_seconds: float = 5.0,
    ) -> None:
        self.topic = topic
        self._tailed = TailedTopic(topic, start=start)
        self._group = TailGroup(
            client, isolation=isolation, headers=headers, refresh_seconds=refresh_seconds
        )
        self._group.add(self._tailed)

    @property
    def problem(self) -> KafkaOperationError | None:
        """Why it cannot be read; None after a successful request."""
        return self._tailed.problem

    @property
    def state(self) -> TailState:
        return self._tailed.state

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to the end offset it had at the start."""
        return self._tailed.caught_up

    @property
    def position(self) -> Mapping[int, int | None]:
        """The next offset per partition; None before its broker's first response."""
        return dict(self._tailed.positions)

    @property
    def topic_id(self) -> str | None:
        """The id of the topic; None on brokers without topic ids (before 2.8)."""
        return self._tailed.topic_id

    def poll(self, max_records: int = 1000, timeout: float = 1.0) -> TailBatch:
        """Up to *max_records* records; waits up to *timeout* seconds for the first.

        Returns early, without records, when the topic was looked up or an end was reached.
        """
        deadline = time.monotonic() + timeout
        while True:
            remaining = max(deadline - time.monotonic(), 0.0)
            batch = self._group.poll(max_records, remaining).get(self.topic)
            if batch is not None:
                return batch
            if time.monotonic() >= deadline:
                return TailBatch([], None, self.problem)

    def close(self) -> None:
        """Close the consumer; the tail cannot be used afterwards."""
        self._group.close()


class Follower(Protocol):
    """Takes the records of a topic, in the polling thread."""

    @property
    def topic(self) -> str: ...

    @property
    def start(self) -> Start:
        """Where reading starts; the same for all followers of a topic."""

    def take(self, tailed: TailedTopic, batch: TailBatch) -> None:
        """Take a batch; it may contain records that were taken before."""


class TakenOffsets:
    """What one follower has taken of a topic."""

    def __init__(self) -> None:
        self._topic_id: str | None = None
        self._next: dict[int, int] = {}

    def clear(self) -> None:
        self._topic_id = None
        self._next.clear()

    def new_of(self, tailed: TailedTopic, batch: TailBatch) -> TailBatch:
        """*batch* without records taken before; restarted if the topic is another one."""
        restarted = batch.restarted
        if tailed.topic_id is not None and self._topic_id not in (None, tailed.topic_id):
            restarted = restarted or Restarted(RestartReason.RECREATED)
        if restarted is not None:
            self.clear()
        self._topic_id = tailed.topic_id or self._topic_id
        following = self._next
        records = [
            each for each in batch.records if each.offset >= following.get(each.partition, 0)
        ]
        following.update((each.partition, each.offset + 1) for each in records)
        return TailBatch(records, restarted, batch.problem)


F = TypeVar("F", bound=Follower)


class SharedTail(Generic[F]):
    """Followers may come and go in any thread; one thread opens and polls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: list[F] = []
        self._changed: set[str] = set()
        self._group: TailGroup | None = None
        self._tailed: dict[str, TailedTopic] = {}

    def follow(self, follower: F) -> None:
        """Read a topic for *follower*; does nothing if it is followed already."""
        with self._lock:
            if follower not in self._followers:
                self._followers.append(follower)
                self._changed.add(follower.topic)

    def unfollow(self, follower: F) -> None:
        with self._lock:
            if follower not in self._followers:
                return
            self._followers.remove(follower)
            if all(each.topic != follower.topic for each in self._followers):
                self._changed.add(follower.topic)

    def open(self, group: TailGroup) -> Sequence[F]:
        """Read all topics from their start, with *group*; returns the followers."""
        with self._lock:
            self._group, self._tailed = group, {}
            self._changed.update(each.topic for each in self._followers)
            return list(self._followers)

    def poll(self, max_records: int, timeout: float) -> Sequence[tuple[F, TailedTopic]]:
        """Pass records to the followers; returns those whose topic has records or was looked up.

        Waits up to *timeout* seconds for the first record.
        """
        group = self._group
        if group is None:
            raise RuntimeError("not opened")
        with self._lock:
            followers = list(self._followers)
            changed, self._changed = self._changed, set()
        starts = {each.topic: each.start for each in followers}
        for topic in changed:
            if self._tailed.pop(topic, None) is not None:
                group.remove(topic)
            if topic in starts:
                self._tailed[topic] = TailedTopic(topic, start=starts[topic])
                group.add(self._tailed[topic])
        batches = group.poll(max_records, timeout)
        touched = [(each, self._tailed[each.topic]) for each in followers if each.topic in batches]
        for follower, tailed in touched:
            follower.take(tailed, batches[follower.topic])
        return touched


_RETRY_SECONDS = 1.0

_EXPECTED_LOOKUPS = 30
"""How often a missing topic is looked up after so short a time: it is expected to be created."""
_LOOKUP_SLICE_SECONDS = 0.05
_LEADER_SECONDS = 5.0

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


class TailGroup:
    """Topics that are read in offset order per partition.

    Not thread-safe. Handles unavailable brokers and topics that are created, deleted, extended
    or re-created; what it looks up of them never delays records. `poll` never raises for cluster
    errors: they are in `Batch.problem`, and in `TailedTopic.problem` until a request succeeds.
    """

    def __init__(
        self,
        client: ClusterClient,
        *,
        isolation: Isolation = "read_uncommitted",
        headers: bool = False,
        refresh_seconds: float = 5.0,
        fetch_wait_seconds: float = 0.5,
    ) -> None:
        """*fetch_wait_seconds*: how long a broker without records delays its response.

        Records do not wait, but the first ones of a topic that is added may.
        """
        self._client = client
        self._isolation: Isolation = isolation
        self._headers = headers
        self._refresh_seconds = refresh_seconds
        self._settings = {
            **_SETTINGS,
            "isolation.level": isolation,
            "fetch.wait.max.ms": str(int(fetch_wait_seconds * 1000)),
        }
        self._topics: dict[str, TailedTopic] = {}
        self._lookups = LookupSchedule(self._look_up)
        self._assigned: dict[str, frozenset[int]] = {}
        self._consumer_lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._is_paused = False

    def add(self, tailed: TailedTopic) -> None:
        """Read another topic; it must not be read yet."""
        self._topics[tailed.topic] = tailed
        self._lookups.set_due(tailed.topic)

    def remove(self, topic: str) -> None:
        del self._topics[topic]
        self._lookups.drop(topic)
        self._unassign(topic)

    def poll(self, max_records: int = 1000, timeout: float = 1.0) -> dict[str, TailBatch]:
        """Up to *max_records* records; waits up to *timeout* seconds for the first.

        Returns early when topics were looked up; these have a batch too.
        """
        deadline = time.monotonic() + timeout
        problem = self._client.handles.login_problem("reading topics")
        if problem is not None:
            return self._pause(problem, timeout)
        touched = self._serve_lookup(0.0)
        if self._is_paused:
            self._is_paused = False
            self._assign(self._topics)
        is_reading = any(self._assigned.values())
        if not touched and not is_reading:
            touched = self._serve_lookup(self._lookups.wait(deadline))
        messages: list[Message] = []
        if is_reading:
            wait = 0.0 if touched else self._lookups.wait(deadline)
            if self._lookups.is_running:
                wait = min(wait, _LOOKUP_SLICE_SECONDS)
            messages = take_available(self._open(), max_records, wait)
        records = self._take(messages)
        return {
            topic: TailBatch(records.get(topic, []), tailed.take_restart(), tailed.problem)
            for topic, tailed in self._topics.items()
            if topic in touched or topic in records
        }

    def _pause(self, problem: KafkaOperationError, timeout: float) -> dict[str, TailBatch]:
        """Close the consumer; topics are read on from their positions when requests go on."""
        if not self._is_paused:
            self._is_paused = True
            self._assigned.clear()
            self._lookups.when_idle(self._close_consumer)
        time.sleep(timeout)
        for tailed in self._topics.values():
            tailed.fail(problem)
        return {
            topic: TailBatch([], tailed.take_restart(), problem)
            for topic, tailed in self._topics.items()
        }

    def close(self) -> None:
        """Close the consumer, after a lookup in progress; the group cannot be used afterwards."""
        self._lookups.when_idle(self._close_consumer)

    def _take(self, messages: Sequence[Message]) -> dict[str, list[TailRecord]]:
        """The records by topic; topics of which only the state has changed have an empty list."""
        found: dict[str, list[TailRecord]] = {}
        topics, with_headers = self._topics, self._headers
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            error = message.error()
            if topic is None:
                # An error of the consumer as a whole.
                if error is not None:
                    for name in topics:
                        self._take_error(topics[name], None, error)
                        found.setdefault(name, [])
                continue
            tailed = topics.get(topic)
            if tailed is None or partition is None:
                continue
            records = found.setdefault(topic, [])
            if error is not None:
                self._take_error(tailed, message, error)
                if tailed.state is not TailState.READING:
                    records.clear()
            elif offset is not None and partition in tailed.positions:
                records.append(TailRecord.of(message, with_headers=with_headers))
                tailed.take(partition, offset)
        return found

    def _take_error(self, tailed: TailedTopic, message: Message | None, error: KafkaError) -> None:
        kind = kind_of(error)
        if error.code() == KafkaError._PARTITION_EOF and message is not None:
            partition, offset = message.partition(), message.offset()
            if partition in tailed.positions and offset is not None:
                tailed.take_end(partition, offset)
        elif kind is ErrorKind.OFFSET_OUT_OF_RANGE:
            tailed.restart(RestartReason.OFFSET_OUT_OF_RANGE)
            self._unassign(tailed.topic)
            self._lookups.set_due(tailed.topic)
        elif kind is ErrorKind.UNKNOWN_TOPIC:
            self._lookups.set_due(tailed.topic)
        else:
            operation = f"reading topic {tailed.topic!r}"
            tailed.fail(self._client.handles.problem(error, operation))

    def _serve_lookup(self, timeout: float) -> set[str]:
        """Look up the topics that are due, in the background; returns those that were."""
        answers = self._lookups.serve(self._topics, timeout)
        touched = {lookup.topic for lookup, answer in answers if self._apply(lookup, answer)}
        self._assign(touched)
        return touched

    def _look_up(self, lookups: Sequence[TopicLookup]) -> LookupAnswers:
        answers = look_up(self._client, lookups, self._isolation)
        if any(self._assigned.values()):
            return answers  # a broker answers a consumer only after its pending fetch
        for topic, answer in answers.items():
            if not isinstance(answer, KafkaOperationError) and answer.starts:
                # A partition assigned before its leader is known waits a second for its leader.
                with self._client.handles.errors(f"reading topic {topic!r}", answered=True):
                    self._open().list_topics(topic, timeout=_LEADER_SECONDS)
        return answers

    def _apply(self, lookup: TopicLookup, answer: TopicDescription | KafkaOperationError) -> bool:
        """Take the answer of one topic; False if it was removed or restarted meanwhile."""
        topic, tailed = lookup.topic, self._topics.get(lookup.topic)
        if tailed is None or lookup != TopicLookup.of(tailed)._replace(
            unknown_ends=lookup.unknown_ends
        ):
            return False
        if isinstance(answer, KafkaOperationError):
            tailed.problem = answer
            self._lookups.set_due(topic, _RETRY_SECONDS)
            return True
        tailed.describe(answer)
        is_absent = tailed.state is TailState.ABSENT
        is_recreated = lookup.topic_id not in (None, tailed.topic_id)
        # Who may describe a topic may still not read it, which librdkafka reports once per
        # assignment.
        if is_absent or is_recreated or tailed.is_refused:
            self._unassign(topic)
        is_expected = is_absent and tailed.absent_lookups <= _EXPECTED_LOOKUPS
        self._lookups.set_due(topic, _RETRY_SECONDS if is_expected else self._refresh_seconds)
        return True

    def _assign(self, topics: Iterable[str]) -> None:
        """Read the partitions of *topics* that are not read yet."""
        added: list[tuple[bool, RawPartition]] = []
        for topic in topics:
            tailed, known = self._topics[topic], self._assigned.get(topic, frozenset())
            if tailed.state is TailState.READING:
                self._assigned[topic] = frozenset(tailed.positions)
                added += [
                    (
                        tailed.awaits_initial_end(partition),
                        RawPartition(topic, partition, OFFSET_BEGINNING if at is None else at),
                    )
                    for partition, at in tailed.positions.items()
                    if partition not in known
                ]
        # Fetches start one after the other: the first one must not wait for a partition without
        # records while others have some.
        added.sort(key=lambda each: not each[0])
        if added:
            self._open().incremental_assign([partition for _, partition in added])

    def _unassign(self, topic: str) -> None:
        partitions = self._assigned.pop(topic, frozenset())
        if partitions:
            self._open().incremental_unassign([RawPartition(topic, each) for each in partitions])

    def _open(self) -> Consumer:
        with self._consumer_lock:
            if self._consumer is None:
                self._consumer = self._client.handles.consumer(self._settings)
            return self._consumer

    def _close_consumer(self) -> None:
        with self._consumer_lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None


_EARLY_SECONDS = 2.5
"""Topics that are due this soon are looked up with those that are due, in the same requests."""


class LookupSchedule:
    """The topics of a group and when each is due. Not thread-safe."""

    def __init__(self, look_up: Callable[[Sequence[TopicLookup]], LookupAnswers]) -> None:
        self._look_up = look_up
        self._due: dict[str, float] = {}
        self._answer: Future[LookupAnswers] | None = None
        self._lookups: Sequence[TopicLookup] = ()

    @property
    def is_running(self) -> bool:
        return self._answer is not None

    def set_due(self, topic: str, seconds: float = 0.0) -> None:
        """Look up *topic* in so many seconds."""
        self._due[topic] = time.monotonic() + seconds

    def drop(self, topic: str) -> None:
        del self._due[topic]

    def wait(self, deadline: float) -> float:
        """Seconds until *deadline*, or until a topic is to be looked up."""
        due = deadline if self.is_running else min(self._due.values(), default=deadline)
        return max(min(deadline, due) - time.monotonic(), 0.0)

    def serve(
        self, topics: Mapping[str, TailedTopic], timeout: float
    ) -> Sequence[tuple[TopicLookup, TopicDescription | KafkaOperationError]]:
        """Look up what is due; answers that arrive within *timeout* seconds."""
        if self._answer is None:
            now = time.monotonic()
            if not any(at <= now for at in self._due.values()):
                time.sleep(timeout)
                return ()
            due = (topic for topic, at in self._due.items() if at <= now + _EARLY_SECONDS)
            self._lookups = tuple(TopicLookup.of(topics[topic]) for topic in due)
            self._answer = call_in_background(partial(self._look_up, self._lookups), "lookup")
        try:
            answers = self._answer.result(timeout)
        except TimeoutError:
            return ()
        except KafkaOperationError as problem:
            answers = {lookup.topic: problem for lookup in self._lookups}
        self._answer = None
        return [(lookup, answers[lookup.topic]) for lookup in self._lookups]

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call *call* after a lookup in progress."""
        if self._answer is None:
            call()
        else:
            self._answer.add_done_callback(lambda _answers: call())


_TIMEOUT_SECONDS = 5.0


class TopicLookup(NamedTuple):
    """What is known of a topic that is looked up."""

    topic: str
    topic_id: str | None
    start: Start
    known: frozenset[int]
    unknown_ends: tuple[int, ...]

    @classmethod
    def of(cls, tailed: TailedTopic) -> TopicLookup:
        return cls(
            tailed.topic,
            tailed.topic_id,
            tailed.start,
            frozenset(tailed.positions),
            tuple(tailed.unknown_ends),
        )

    def unread(self, identity: TopicIdentity) -> tuple[Start, list[TopicPartition]]:
        """The partitions that are not read yet, all of a re-created topic, and where they start.

        Partitions that were added later are read from their start: all records are new.
        """
        known = self.known if self.topic_id in (None, identity.topic_id) else frozenset()
        is_first = not self.known
        return self.start if is_first else "start", [
            TopicPartition(self.topic, partition)
            for partition in range(identity.partitions)
            if partition not in known
        ]


LookupAnswers = dict[str, TopicDescription | KafkaOperationError]


def look_up(
    client: ClusterClient, lookups: Sequence[TopicLookup], isolation: Isolation
) -> LookupAnswers:
    """The description, or the failure, of each topic, in few requests.

    Raises KafkaOperationError when the cluster does not answer.
    """
    identities, errors = client.identify([each.topic for each in lookups], _TIMEOUT_SECONDS)
    answers: LookupAnswers = {}
    unread: dict[str, list[TopicPartition]] = {}
    starting: defaultdict[Start, list[TopicPartition]] = defaultdict(list)
    unknown_ends: list[TopicPartition] = []
    for lookup in lookups:
        identity = identities.get(lookup.topic)
        if identity is None:
            answers[lookup.topic] = _absent_or_failed(client, lookup.topic, errors)
            continue
        start, unread[lookup.topic] = lookup.unread(identity)
        starting[start] += unread[lookup.topic]
        unknown_ends += unread[lookup.topic]
        unknown_ends += [TopicPartition(lookup.topic, number) for number in lookup.unknown_ends]
    starts: dict[TopicPartition, int] = {}
    failed: dict[TopicPartition, ErrorKind] = {}
    for start, partitions in starting.items():
        if partitions:
            found = _initial_offsets(client, partitions, start, isolation)
            starts.update(found.offsets)
            if start != "start":
                failed.update(found.errors)
    ends = client.end_offsets(unknown_ends, isolation, _TIMEOUT_SECONDS).offsets
    for topic, partitions in unread.items():
        failure = next((each for each in partitions if each in failed), None)
        if failure is not None:
            operation = f"reading the start offset of {failure}"
            answers[topic] = _lookup_failure(client, operation, failed[failure])
            continue
        answers[topic] = TopicDescription(
            identities[topic],
            {each.partition: starts.get(each) for each in partitions},
            {each.partition: end for each, end in ends.items() if each.topic == topic},
        )
    return answers


def _initial_offsets(
    client: ClusterClient, partitions: Sequence[TopicPartition], start: Start, isolation: Isolation
) -> OffsetReading:
    if start == "start":
        # One request for all offsets; lookups by the consumer, one per partition, would delay
        # the first records behind fetches of empty partitions.
        return client.start_offsets(partitions, _TIMEOUT_SECONDS)
    if start == "end":
        return client.end_offsets(partitions, isolation, _TIMEOUT_SECONDS)
    return client.offsets_at(partitions, start, isolation, _TIMEOUT_SECONDS)


def _absent_or_failed(
    client: ClusterClient, topic: str, errors: Mapping[str, ErrorKind]
) -> TopicDescription | KafkaOperationError:
    kind = errors.get(topic, ErrorKind.OTHER)
    if kind is ErrorKind.UNKNOWN_TOPIC:
        return TopicDescription(None, {}, {})
    return _lookup_failure(client, f"describing topic {topic!r}", kind)


def _lookup_failure(client: ClusterClient, operation: str, kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(
        kind, cluster=client.alias, operation=operation, detail="the broker refused the request"
    )
