"""Reads several topics of a cluster with one consumer: each to its end offset, then follows it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, cast

from confluent_kafka import OFFSET_BEGINNING, KafkaError
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_kafka.available_messages import take_available
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError, kind_of
from mm2slo_kafka.lookup_schedule import LookupSchedule
from mm2slo_kafka.tailed_topic import Batch, RestartReason, TailedTopic, TailRecord, TailState
from mm2slo_kafka.topic_lookup import TopicLookup, look_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka import Consumer, Message

    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation
    from mm2slo_kafka.tailed_topic import Headers, TopicDescription
    from mm2slo_kafka.topic_lookup import Answers

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
        """Stop reading a topic."""
        del self._topics[topic]
        self._lookups.drop(topic)
        self._unassign(topic)

    def poll(self, max_records: int = 1000, timeout: float = 1.0) -> dict[str, Batch]:
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
            topic: Batch(records.get(topic, []), tailed.take_restart(), tailed.problem)
            for topic, tailed in self._topics.items()
            if topic in touched or topic in records
        }

    def _pause(self, problem: KafkaOperationError, timeout: float) -> dict[str, Batch]:
        """Close the consumer; topics are read on from their positions when requests go on."""
        if not self._is_paused:
            self._is_paused = True
            self._assigned.clear()
            self._lookups.when_idle(self._close_consumer)
        time.sleep(timeout)
        for tailed in self._topics.values():
            tailed.fail(problem)
        return {
            topic: Batch([], tailed.take_restart(), problem)
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

    def _look_up(self, lookups: Sequence[TopicLookup]) -> Answers:
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


def _headers(message: Message) -> Headers:
    # The client's type also covers what producers accept; consumed headers are a list.
    return cast("Headers", message.headers() or [])
