"""Produces the demo's records and commits offsets of its consumer groups."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.kafka_errors import KafkaOperationError, translated
from mm2slo_kafka.record_producer import DeliveryResult, RecordProducer
from mm2slo_lab.lab_data import commit

logger = logging.getLogger(__name__)
_TICK = 0.1
_COMMIT_EVERY = 1.0
_FLUSH_SECONDS = 30.0
_VALUE_SIZE = 200

Ends = dict[tuple[str, str], dict[int, int]]
"""Next offsets by partition, by (cluster, topic)."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A topic and the records per second produced to it."""

    cluster: str
    topic: str
    partitions: int
    rate: float


class Pace(StrEnum):
    """How far a consumer group lags."""

    HEAD = "head"  # commits the newest record
    BEHIND = "behind"  # commits about a second late
    IDLE = "idle"  # committed once and stopped


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A consumer group of one topic."""

    cluster: str
    topic: str
    group: str
    pace: Pace


STREAMS: Final = (
    Stream("us", "orders", partitions=3, rate=40),
    Stream("us", "payments", partitions=2, rate=20),
    Stream("eu", "orders", partitions=3, rate=15),
    Stream("eu", "clicks", partitions=4, rate=80),
)

CONSUMER_GROUPS: Final = (
    ConsumerGroup("us", "orders", "order-service", Pace.HEAD),
    ConsumerGroup("us", "payments", "fraud-check", Pace.BEHIND),
    ConsumerGroup("us", "orders", "monthly-report", Pace.IDLE),
    ConsumerGroup("eu", "clicks", "recommendations", Pace.HEAD),
    ConsumerGroup("eu", "orders", "invoicing", Pace.BEHIND),
    ConsumerGroup("eu", "clicks", "ad-hoc-analysis", Pace.IDLE),
)

BEHIND_RECORDS: Final = 10
"""Lag of a group in records per partition."""


class Traffic:
    """Produces and commits in two background threads; a context manager.

    *clusters* has the librdkafka properties of each cluster.
    """

    def __init__(
        self,
        clusters: Mapping[str, Mapping[str, str]],
        streams: Sequence[Stream],
        readers: Sequence[ConsumerGroup],
    ) -> None:
        self._clusters = clusters
        self._streams = streams
        self._readers = readers
        self._producers = {
            alias: RecordProducer(HandleFactory(alias, properties))
            for alias, properties in clusters.items()
        }
        self._ends: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        self._committed: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._stopping = threading.Event()
        self._producing = threading.Thread(target=self._produce, name="demo-produce")
        self._committing = threading.Thread(target=self._commit, name="demo-commit")

    def __enter__(self) -> Self:
        self._producing.start()
        self._committing.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop()
        for producer in self._producers.values():
            producer.close(timeout=0.0)

    def finish(self) -> Mapping[tuple[str, str], int]:
        """Stop for good; returns the sum of end offsets by (cluster, topic).

        All records are acknowledged and all offsets committed afterwards. Raises
        KafkaOperationError when a cluster does not respond.
        """
        self._stop()
        for alias, producer in self._producers.items():
            with translated(alias, "producing the last records"):
                if left := producer.flush(_FLUSH_SECONDS):
                    raise TimeoutError(f"{left} records are not acknowledged")
        for reader in self._readers:
            self._commit_for(reader)
        return {place: sum(ends.values()) for place, ends in self._ends.items()}

    def _stop(self) -> None:
        self._stopping.set()
        for thread in (self._producing, self._committing):
            if thread.is_alive():
                thread.join()

    # Records

    def _produce(self) -> None:
        due = [0.0] * len(self._streams)
        numbers = [0] * len(self._streams)
        before = time.monotonic()
        while not self._stopping.wait(_TICK):
            now = time.monotonic()
            elapsed, before = now - before, now
            for index, stream in enumerate(self._streams):
                due[index] += stream.rate * elapsed
                while due[index] >= 1:
                    due[index] -= 1
                    self._send(stream, numbers[index])
                    numbers[index] += 1
            for producer in self._producers.values():
                producer.poll()

    def _send(self, stream: Stream, number: int) -> None:
        place = (stream.cluster, stream.topic)

        def on_delivery(result: DeliveryResult) -> None:
            if isinstance(result, KafkaOperationError):
                logger.warning("%s", result)
            else:
                ends = self._ends[place]
                ends[result.partition] = max(ends.get(result.partition, 0), result.offset + 1)

        value = f'{{"{stream.topic}": {number}}}'.encode().ljust(_VALUE_SIZE)
        key = f"{stream.topic}-{number}".encode()
        self._producers[stream.cluster].send(
            stream.topic, key=key, value=value, on_delivery=on_delivery
        )

    # Groups

    def _commit(self) -> None:
        while not self._stopping.wait(_COMMIT_EVERY):
            for reader in self._readers:
                try:
                    self._commit_for(reader)
                except KafkaOperationError as problem:
                    logger.warning("%s", problem)  # retried in the next round

    def _commit_for(self, reader: ConsumerGroup) -> None:
        known = self._committed[reader.group]
        wanted = next_commits(reader.pace, dict(self._ends[reader.cluster, reader.topic]), known)
        if not wanted:
            return
        with translated(reader.cluster, f"committing for group {reader.group!r}"):
            commit(self._clusters[reader.cluster], reader.topic, reader.group, wanted)
        known.update(wanted)


def next_commits(pace: Pace, ends: Mapping[int, int], known: Mapping[int, int]) -> dict[int, int]:
    """Return the offsets to commit by partition: those above the *known* ones."""
    behind = BEHIND_RECORDS if pace is Pace.BEHIND else 0
    return {
        partition: end - behind
        for partition, end in ends.items()
        if end - behind > known.get(partition, 0) and not (pace is Pace.IDLE and partition in known)
    }
