"""Reads a flow's carrier topics on the target and reports arrivals."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.canary_record import CanaryRecord, is_canary_heartbeat
from mm2slo_core.records import DecodeError, Heartbeat, Tombstone
from mm2slo_exporter.canary.canary_events import (
    Arrived,
    EarlierCanary,
    HeartbeatSeen,
    InstanceNamed,
    Malformed,
    ReadUpTo,
    RestoreFinished,
    StageFailed,
    StageSucceeded,
    TargetReadRestarted,
)
from mm2slo_exporter.collection_health import Stage
from mm2slo_kafka.kafka_errors import CLUSTER_AWAY
from mm2slo_kafka.tailed_topic import TailState
from mm2slo_kafka.topic_tail import TopicTail

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_exporter.canary.event_outbox import Outbox
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.kafka_errors import KafkaOperationError
    from mm2slo_kafka.tailed_topic import TailRecord

_INSTANCE_TIMEOUT_SECONDS = 25.0
_RESTORE_TIMEOUT_SECONDS = 15.0
_POLL_SECONDS = 0.2
_REPORT_SECONDS = 0.5


@dataclass(slots=True)
class _Stream:
    """One topic being followed, and which records to take from it."""

    tail: TopicTail
    heartbeats: bool
    canaries: bool
    rereads: bool = False
    """Whether it is read from its start again, and has not caught up."""


class Receiver:
    """Reports one flow's arrivals; sets *restored* once earlier canaries were reported."""

    def __init__(
        self,
        spec: CanarySpec,
        source: ClusterClient,
        target: ClusterClient,
        outbox: Outbox,
        restored: threading.Event,
        *,
        instance: Callable[[], str | None],
    ) -> None:
        """*instance*: the name of this replica, None while it has none."""
        self._spec = spec
        self._source = source
        self._target = target
        self._outbox = outbox
        self._restored = restored
        self._instance = instance
        self._named: str | None = None
        self._reported: dict[Stage, float] = {}
        self.copy_partitions: int = 0
        """How many partitions the copy has; 0 as long as it is not read."""

    def run(self, stopping: threading.Event) -> None:
        since = time.time() - self._spec.restore_seconds
        streams = self._streams(since)
        try:
            if self._spec.carrier != "off" and self._await_instance(stopping):
                self._report_earlier_canaries(since, stopping)
            self._replay(streams, stopping)
            self._restored.set()
            self._outbox.put(RestoreFinished(self._spec.flow, time.time()))
            # One thread per stream, so that no arrival waits for another topic's poll.
            others = [
                threading.Thread(target=self._follow, args=(stream, stopping), daemon=True)
                for stream in streams[1:]
            ]
            for thread in others:
                thread.start()
            if streams:
                self._follow(streams[0], stopping)
            for thread in others:
                thread.join()
        finally:
            for stream in streams:
                stream.tail.close()

    def _await_instance(self, stopping: threading.Event) -> bool:
        """Wait for the name under which an earlier process may have sent canaries."""
        deadline = time.monotonic() + _INSTANCE_TIMEOUT_SECONDS
        while (name := self._instance()) is None and time.monotonic() < deadline:
            if stopping.wait(_POLL_SECONDS):
                return False
        if name is not None:
            self._outbox.put(InstanceNamed(self._spec.flow, name))
        return name is not None

    def _follow(self, stream: _Stream, stopping: threading.Event) -> None:
        while not stopping.is_set():
            # One record per poll: a batch would be held back until it is full or times out.
            self._receive(stream, max_records=1, timeout=_POLL_SECONDS)

    def _streams(self, since: float) -> list[_Stream]:
        spec = self._spec
        shared = spec.carrier == "heartbeats"
        streams = []
        if spec.heartbeats_topic_on_target is not None:
            beats = self._tail_of_target(spec.heartbeats_topic_on_target, since)
            streams.append(_Stream(beats, heartbeats=True, canaries=shared))
        if spec.carrier == "topic":
            own = self._tail_of_target(spec.target_topic, since)
            # The canary topic first: its arrival times matter most.
            streams.insert(0, _Stream(own, heartbeats=False, canaries=True))
        return streams

    def _tail_of_target(self, topic: str, since: float) -> TopicTail:
        # MirrorMaker 2 may use transactions: aborted records never arrived.
        return TopicTail(self._target, topic, start=since, isolation="read_committed", headers=True)

    def _replay(self, streams: list[_Stream], stopping: threading.Event) -> None:
        """Read existing records; waits for an unreachable target: they must not count as new.

        A topic that cannot be read for another reason does not hold back the others.
        """
        for stream in streams:
            while not stopping.is_set():
                self._receive(stream, max_records=1000, timeout=_POLL_SECONDS)
                problem = stream.tail.problem
                is_denied = problem is not None and problem.kind not in CLUSTER_AWAY
                if stream.tail.caught_up or stream.tail.state is TailState.ABSENT or is_denied:
                    break

    def _report_earlier_canaries(self, since: float, stopping: threading.Event) -> None:
        """Report canaries on the source that an earlier process of this instance sent."""
        tail = TopicTail(self._source, self._spec.source_topic, start=since, headers=True)
        deadline = time.monotonic() + _RESTORE_TIMEOUT_SECONDS
        problem = None
        try:
            while not stopping.is_set() and time.monotonic() < deadline:
                batch = tail.poll(max_records=1000, timeout=_POLL_SECONDS)
                problem = batch.problem or problem
                for record in batch.records:
                    canary = self._canary(record)
                    if canary is not None:
                        self._outbox.put(_earlier_canary(self._spec.flow, record, canary))
                if tail.caught_up or tail.state is TailState.ABSENT:
                    return
        finally:
            tail.close()
        if problem is not None:
            self._report_failure(Stage.CANARY_SEND, problem)

    def _receive(self, stream: _Stream, *, max_records: int, timeout: float) -> None:
        batch = stream.tail.poll(max_records=max_records, timeout=timeout)
        at = time.time()
        if stream.canaries:
            self.copy_partitions = len(stream.tail.position)
        if stream.canaries and batch.restarted is not None:
            self._outbox.put(TargetReadRestarted(self._spec.flow, at))
            stream.rereads = True
        for record in batch.records:
            canary = self._canary(record) if stream.canaries else None
            if canary is not None:
                self._outbox.put(
                    Arrived(self._spec.flow, canary.sequence, record.partition, at, stream.rereads)
                )
            elif stream.heartbeats:
                self._report_heartbeat(record, at)
        stream.rereads &= not stream.tail.caught_up
        self._report(stream, at)

    def _canary(self, record: TailRecord) -> CanaryRecord | None:
        """The canary in a record; None unless it is of this instance and flow."""
        try:
            canary = CanaryRecord.from_headers(record.headers)
        except DecodeError as error:
            self._malformed("canary", error.reason)
            return None
        self._named = self._instance() or self._named
        own = (self._named, self._spec.flow)
        return canary if canary is not None and (canary.instance, canary.flow) == own else None

    def _report_heartbeat(self, record: TailRecord, at: float) -> None:
        try:
            beat = Heartbeat.decode(record.key, record.value)
        except DecodeError as error:
            self._malformed("heartbeat", error.reason)
            return
        if isinstance(beat, Tombstone) or is_canary_heartbeat(beat):
            return
        self._outbox.put(
            HeartbeatSeen(
                flow=self._spec.flow,
                emitter=beat.source_alias,
                emitted_at=beat.timestamp_ms / 1000,
                at=at,
                replayed=not self._restored.is_set(),
            )
        )

    def _report(self, stream: _Stream, at: float) -> None:
        """Report periodically how far was read, or the failure."""
        stage = Stage.CANARY_RECEIVE if stream.canaries else Stage.HEARTBEATS
        if at - self._reported.get(stage, 0.0) < _REPORT_SECONDS:
            return
        self._reported[stage] = at
        if stream.tail.problem is not None:
            self._report_failure(stage, stream.tail.problem)
            return
        if stream.tail.state is TailState.STARTING:
            return
        self._outbox.put(StageSucceeded(self._spec.flow, self._spec.target_alias, stage.value, at))
        if stream.canaries:
            for partition, offset in stream.tail.position.items():
                if offset is not None:
                    self._outbox.put(ReadUpTo(self._spec.flow, partition, offset, at))

    def _malformed(self, kind: str, reason: str) -> None:
        spec = self._spec
        self._outbox.put(Malformed(spec.flow, spec.target_alias, kind, str(reason)))

    def _report_failure(self, stage: Stage, problem: KafkaOperationError) -> None:
        flow, kind = self._spec.flow, problem.kind.value
        self._outbox.put(
            StageFailed(flow, problem.cluster, stage.value, kind, str(problem), time.time())
        )


def _earlier_canary(flow: str, record: TailRecord, canary: CanaryRecord) -> EarlierCanary:
    return EarlierCanary(
        flow=flow,
        sequence=canary.sequence,
        partition=record.partition,
        offset=record.offset,
        sent_at=canary.sent_at,
        floor=canary.floor,
        newest_arrived=canary.newest_arrived,
    )
