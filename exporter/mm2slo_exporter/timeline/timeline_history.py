"""Reads the timeline backwards after a start, in a thread of its own.

It shows when the unreplicated records arrived, and nothing waits for it. Chunks of a minute, which
have a record of each topic, are read from the newest on, further apart the older they are, until
the arrivals of all unreplicated records are known, memory is full, or nothing older exists. Of a
topic without a backlog, only the newest record is kept, which shows a truncation or a re-creation.
"""

import queue
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from mm2slo_core.records.mirror_records import DecodeError
from mm2slo_core.records.timeline_record import Side, WatermarkRecord
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_exporter.timeline.record_schedule import UNCHANGED_INTERVAL_SECONDS
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading
from mm2slo_kafka.record_slice import read_records
from mm2slo_kafka.tailed_topic import TailRecord

_CHUNK_SECONDS = UNCHANGED_INTERVAL_SECONDS + 10.0

_SPACING = 0.2
"""Distance of the next chunk as a share of its age; brackets are as wide."""
_RETRY_SECONDS = 1.0
_TOPIC_TIMEOUT_SECONDS = 10.0


class HistoryChunk(NamedTuple):
    """Source records of one flow by topic, newest first."""

    records: Mapping[str, Sequence[WatermarkRecord]]

    @property
    def oldest(self) -> float | None:
        """When the first of these polls was requested; None without any."""
        times = (records[-1].times.requested_at for records in self.records.values())
        return min(times, default=None)


class TimelineHistory:
    """One flow's reader: `start`, `take` a chunk, `proceed` with topics that need older ones."""

    def __init__(
        self,
        flow: Flow,
        client: ClusterClient,
        topic: str,
        health: CollectionHealth,
        *,
        until: float,
    ) -> None:
        """*until*: the time before the first poll of this process."""
        self._flow = flow
        self._client = client
        self._partition = TopicPartition(topic, 0)
        self._health = health
        self._newest = self._until = until
        self._topics: AbstractSet[str] = frozenset()
        self._chunks: queue.SimpleQueue[HistoryChunk] = queue.SimpleQueue()
        self._wanted: queue.SimpleQueue[AbstractSet[str]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self.is_started = False
        self.is_ended = False
        """Whether nothing more will be read."""
        self._thread = SupervisedThread(
            Loop.HISTORY, flow.label, self._run, self._stopping, health.record_loop_failure
        )

    def start(self, topics: AbstractSet[str]) -> None:
        """Read the newest chunk; *topics* may have a backlog."""
        self._topics = topics
        self.is_started = True
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.put(frozenset())
        self.join()

    def join(self) -> None:
        """Wait briefly for the end of the thread."""
        self._thread.join()

    def take(self) -> HistoryChunk | None:
        """The next chunk, if it was read."""
        try:
            return self._chunks.get_nowait()
        except queue.Empty:
            return None

    def proceed(self, topics: AbstractSet[str]) -> None:
        """Read an older chunk, of *topics* only; without any, end."""
        self._wanted.put(topics)

    def _run(self) -> None:
        self._read_backwards()
        self.is_ended = True

    def _read_backwards(self) -> None:
        while not self._stopping.is_set():
            since = self._until - _CHUNK_SECONDS
            try:
                with self._health.stage(self._client.alias, CollectionStage.TIMELINE):
                    chunk, is_oldest = self._read(since)
            except KafkaOperationError as problem:
                if problem.kind is ErrorKind.AUTHORIZATION:
                    return
                self._stopping.wait(_RETRY_SECONDS)
                continue
            self._chunks.put(chunk)
            self._topics = self._wanted.get()
            if is_oldest or not self._topics:
                return
            distance = _SPACING * (self._newest - since) - _CHUNK_SECONDS
            self._until = since - max(0.0, distance)

    def _read(self, since: float) -> tuple[HistoryChunk, bool]:
        """The records of the chunk that starts at *since*, and whether none are older."""
        # Offsets of a missing topic fail as if its leader were unreachable.
        if not self._client.topic_exists(self._partition.topic, _TOPIC_TIMEOUT_SECONDS):
            return HistoryChunk({}), True
        oldest = self._offset(self._client.start_offsets([self._partition]))
        start = self._offset(self._client.offsets_at([self._partition], since))
        end = self._offset(self._client.offsets_at([self._partition], self._until))
        found: defaultdict[str, list[WatermarkRecord]] = defaultdict(list)
        newest: dict[str, TailRecord] = {}
        """Of the other topics; only the newest chunk has them."""
        if start < end:
            with closing(read_records(self._client, self._partition, start)) as records:
                for raw in records:
                    if raw.offset >= end or self._stopping.is_set():
                        break
                    topic = self._topic_of(raw)
                    if topic is None:
                        continue
                    if topic in self._topics:
                        found[topic] += self._decode(raw)
                    elif self._until == self._newest:
                        newest[topic] = raw
        for topic, raw in newest.items():
            found[topic] += self._decode(raw)
        newest_first = {topic: records[::-1] for topic, records in found.items() if records}
        return HistoryChunk(newest_first), start <= oldest

    def _topic_of(self, raw: TailRecord) -> str | None:
        """The source topic; None for a record of the target or of another flow."""
        key = (raw.key or b"").decode(errors="replace")
        prefix = f"{self._flow.slug}/{Side.SOURCE}/"
        return key.removeprefix(prefix) if key.startswith(prefix) else None

    def _decode(self, raw: TailRecord) -> list[WatermarkRecord]:
        """The record; none if it is malformed."""
        try:
            found = WatermarkRecord.decode(raw.value)
        except DecodeError as error:
            self._health.record_malformed(self._client.alias, "timeline", error.reason)
            return []
        # Arrivals need no more; the rest takes half of the memory of a chunk.
        return [replace(found, log_starts=(), committed=(), sync_upstreams=(), sync_downstreams=())]

    def _offset(self, reading: OffsetReading) -> int:
        """The offset of the timeline's partition in *reading*. Raises KafkaOperationError."""
        offset = reading.offsets.get(self._partition)
        if offset is None:
            raise KafkaOperationError(
                reading.errors.get(self._partition, ErrorKind.OTHER),
                cluster=self._client.alias,
                operation=f"reading offsets of {self._partition}",
                detail="its leader returned no offset",
            )
        return offset
