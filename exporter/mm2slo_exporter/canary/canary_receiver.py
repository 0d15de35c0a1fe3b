"""Reads the copies of all carrier topics on one target, in one thread with one consumer.

At the start, the canaries that an earlier process of this replica sent are read on the source.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from mm2slo_core.indicators.canary_rules import CanaryRecord, is_canary_heartbeat
from mm2slo_core.records.mirror_records import DecodeError, Heartbeat, Tombstone
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    CanarySpec,
    EarlierCanary,
    EventBuffer,
    HeartbeatSeen,
    InstanceNamed,
    Malformed,
    ReadUpTo,
    RestoreFinished,
    StageFailed,
    StageSucceeded,
    TargetReadRestarted,
)
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import TailBatch, TailedTopic, TailRecord, TailState
from mm2slo_kafka.topic_tail import SharedTail, TailGroup, TakenOffsets, TopicTail

_ARRIVAL_BATCH = 1000
_ARRIVAL_POLL_SECONDS = 0.2


class ArrivalReader:
    """Reads for all receivers of a target; they are added in any thread, and read from then on."""

    def __init__(self, target: ClusterClient) -> None:
        self._target = target
        self._shared: SharedTail[CopyStream] = SharedTail()
        self._receivers: list[CanaryReceiver] = []

    def add(self, receiver: CanaryReceiver) -> None:
        """Read the heartbeats of *receiver*."""
        for stream in receiver.heartbeats:
            self._shared.follow(stream)
        self._receivers.append(receiver)

    def add_canaries(self, receiver: CanaryReceiver) -> None:
        """Read the canaries of *receiver*, whose earlier ones were reported."""
        for stream in receiver.canaries:
            self._shared.follow(stream)

    def run(self, stopping: threading.Event) -> None:
        # With exactly-once, MirrorMaker 2 writes in transactions (KIP-618): a record of an
        # aborted one never arrived, and is written again.
        group = TailGroup(self._target, isolation="read_committed", headers=True)
        self._shared.open(group)
        try:
            while not stopping.is_set():
                self._shared.poll(_ARRIVAL_BATCH, _ARRIVAL_POLL_SECONDS)
                at = time.time()
                for receiver in list(self._receivers):
                    receiver.report(at)
        finally:
            group.close()


_READ_UP_TO_REPORT_SECONDS = 0.5


class CopyStream:
    """One topic on the target, of whose records a flow takes the canaries or the heartbeats."""

    def __init__(
        self, receiver: CanaryReceiver, topic: str, start: float, *, canaries: bool
    ) -> None:
        self.topic = topic
        self.start = start
        self.canaries = canaries
        self.is_history = True
        """Whether its records existed when reading started, from `start` or later from the start
        of the topic: their arrival was not observed."""
        self.tailed: TailedTopic | None = None
        self._receiver = receiver
        self._taken = TakenOffsets()

    @property
    def is_restored(self) -> bool:
        """Whether existing records were read, or the cluster answered that the topic is absent."""
        if self.tailed is None:
            return False
        return self.tailed.caught_up or self.tailed.state is TailState.ABSENT

    def take(self, tailed: TailedTopic, batch: TailBatch) -> None:
        self.tailed = tailed
        new = self._taken.new_of(tailed, batch)
        self.is_history |= new.restarted is not None
        self._receiver.receive(self, new, time.time())
        self.is_history &= not tailed.caught_up


class CanaryReceiver:
    """Reports the canaries and heartbeats of one flow that arrive, and how far was read."""

    def __init__(
        self, spec: CanarySpec, outbox: EventBuffer, *, instance: Callable[[], str | None]
    ) -> None:
        """*instance*: the name of this replica, None while it has none."""
        self._spec = spec
        self._outbox = outbox
        self._instance = instance
        self._named: str | None = None
        self.is_restored = False
        self._reported: dict[CollectionStage, float] = {}
        self.since = time.time() - spec.restore_seconds
        self.copy_partitions: int = 0
        """How many partitions the copy has; 0 as long as it is not read."""
        self.canaries: Sequence[CopyStream] = ()
        self.heartbeats: Sequence[CopyStream] = ()
        """Apart from canaries, although the topic may be the same: they do not wait for the name
        of this replica and for earlier canaries, which an unreachable source holds back."""
        beats = spec.heartbeats_topic_on_target
        if beats is not None:
            self.heartbeats = (CopyStream(self, beats, self.since, canaries=False),)
        carrier = {"topic": spec.target_topic, "heartbeats": beats}.get(spec.carrier)
        if carrier is not None:
            self.canaries = (CopyStream(self, carrier, self.since, canaries=True),)

    def report_instance(self, name: str) -> None:
        """Report the name under which an earlier process may have sent canaries."""
        self._outbox.put(InstanceNamed(self._spec.flow, name))

    def take_earlier(self, records: Sequence[TailRecord]) -> None:
        """Report canaries on the source that an earlier process of this instance sent."""
        for record in records:
            canary = self._canary(record)
            if canary is not None:
                self._outbox.put(
                    EarlierCanary(
                        flow=self._spec.flow,
                        sequence=canary.sequence,
                        partition=record.partition,
                        offset=record.offset,
                        sent_at=canary.sent_at,
                        floor=canary.floor,
                        newest_arrived=canary.newest_arrived,
                        settled_to=canary.settled_to,
                    )
                )

    def report_unread(self, problem: KafkaOperationError) -> None:
        self._report_failure(self._spec.source_alias, CollectionStage.CANARY_SEND, problem)

    def receive(self, stream: CopyStream, batch: TailBatch, at: float) -> None:
        """Report the arrivals of *batch*."""
        if stream.canaries and stream.tailed is not None:
            self.copy_partitions = len(stream.tailed.positions)
        if stream.canaries and batch.restarted is not None:
            self._outbox.put(TargetReadRestarted(self._spec.flow, at))
        for record in batch.records:
            if not stream.canaries:
                self._report_heartbeat(record, at, replayed=stream.is_history)
            elif (canary := self._canary(record)) is not None:
                history, partition = stream.is_history, record.partition
                self._outbox.put(Arrived(self._spec.flow, canary.sequence, partition, at, history))

    def report(self, at: float) -> None:
        """Report the end of the restore, and periodically how far was read, or the failure."""
        for stream in (*self.canaries, *self.heartbeats):
            self._report(stream, at)
        if not self.is_restored and all(stream.is_restored for stream in self.canaries):
            self.is_restored = True
            self._outbox.put(RestoreFinished(self._spec.flow, at))

    def _canary(self, record: TailRecord) -> CanaryRecord | None:
        """The canary in a record; None unless it is of this instance and flow."""
        # Replicas, and flows from one source, share a topic: each counts its own canaries alone.
        try:
            canary = CanaryRecord.from_headers(record.headers)
        except DecodeError as error:
            self._malformed("canary", error.reason)
            return None
        self._named = self._instance() or self._named
        own = (self._named, self._spec.flow)
        return canary if canary is not None and (canary.instance, canary.flow) == own else None

    def _report_heartbeat(self, record: TailRecord, at: float, *, replayed: bool) -> None:
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
                replayed=replayed,
            )
        )

    def _report(self, stream: CopyStream, at: float) -> None:
        tailed = stream.tailed
        stage = CollectionStage.CANARY_RECEIVE if stream.canaries else CollectionStage.HEARTBEATS
        if tailed is None or at - self._reported.get(stage, 0.0) < _READ_UP_TO_REPORT_SECONDS:
            return
        self._reported[stage] = at
        if tailed.problem is not None:
            self._report_failure(self._spec.target_alias, stage, tailed.problem)
            return
        if tailed.state is TailState.STARTING:
            return
        self._outbox.put(StageSucceeded(self._spec.flow, self._spec.target_alias, stage.value, at))
        if stream.canaries:
            for partition, offset in tailed.positions.items():
                if offset is not None:
                    self._outbox.put(ReadUpTo(self._spec.flow, partition, offset, at))

    def _malformed(self, kind: str, reason: str) -> None:
        spec = self._spec
        self._outbox.put(Malformed(spec.flow, spec.target_alias, kind, str(reason)))

    def _report_failure(
        self, alias: str, stage: CollectionStage, problem: KafkaOperationError
    ) -> None:
        self._outbox.put(
            StageFailed.of(
                problem, flow=self._spec.flow, cluster=alias, stage=stage.value, at=time.time()
            )
        )


_EARLIER_POLL_SECONDS = 0.2
_EARLIER_REPORT_SECONDS = 5.0


class EarlierCanaries:
    """Canaries that earlier processes of this replica sent, of all flows that share the topic."""

    def __init__(
        self,
        source: ClusterClient,
        topic: str,
        receivers: Sequence[CanaryReceiver],
        instance: Callable[[], str | None],
    ) -> None:
        """*instance*: the name of this replica, None while it has none."""
        self._source = source
        self._topic = topic
        self._receivers = receivers
        self._instance = instance

    def report(self, stopping: threading.Event) -> bool:
        """Report them to the receivers; False if *stopping* was set before the source answered.

        That it denies the access is an answer. Going on without one would lose them.
        """
        while (name := self._instance()) is None:
            if stopping.wait(_EARLIER_POLL_SECONDS):
                return False
        for receiver in self._receivers:
            receiver.report_instance(name)
        start = min(receiver.since for receiver in self._receivers)
        tail = TopicTail(self._source, self._topic, start=start, headers=True)
        report_at = 0.0
        try:
            while not stopping.is_set():
                batch = tail.poll(max_records=1000, timeout=_EARLIER_POLL_SECONDS)
                for receiver in self._receivers:
                    receiver.take_earlier(batch.records)
                if tail.caught_up or tail.state is TailState.ABSENT:
                    return True
                if batch.problem is not None and time.monotonic() >= report_at:
                    report_at = time.monotonic() + _EARLIER_REPORT_SECONDS
                    for receiver in self._receivers:
                        receiver.report_unread(batch.problem)
                    if batch.problem.kind is ErrorKind.AUTHORIZATION:
                        return True
        finally:
            tail.close()
        return False
