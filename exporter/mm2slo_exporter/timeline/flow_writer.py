"""Writes the state records and the timeline of flows while this process is the leader.

All flows to one target share one producer and one election.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping

from mm2slo_core.cluster_writes import arrivals_settings, timeline_settings
from mm2slo_core.config.exporter_settings import ExporterSettings
from mm2slo_core.kafka_permissions import LEADER_GROUPS
from mm2slo_core.topology import Flow
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import Observation
from mm2slo_exporter.state.flow_report import FlowReport, TimelineState
from mm2slo_exporter.state.flow_topics import FlowTopics
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_exporter.timeline.record_schedule import StateSchedule, TimelineSchedule
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.leadership import Leadership
from mm2slo_kafka.record_producer import DeliveryResult, RecordProducer


class FlowWriter:
    """Selects one flow's records and writes them again if they were not delivered."""

    def __init__(
        self,
        flow: Flow,
        cluster: ClusterWriter,
        health: CollectionHealth,
        *,
        has_timeline: bool,
        counted: TimelineState | None = None,
    ) -> None:
        """Continues the counts of *counted*."""
        self._alias = flow.target
        self._cluster = cluster
        self._health = health
        self._has_timeline = has_timeline
        self._timeline = TimelineSchedule(flow)
        self._state = StateSchedule(flow)
        self._missed: set[CollectionStage] = set()
        self._delivered: set[CollectionStage] = set()
        self._records = counted.records_total if counted else 0
        self._bytes = counted.bytes_total if counted else 0

    @property
    def timeline_state(self) -> TimelineState | None:
        """What was written to the timeline; None if it is switched off."""
        if not self._has_timeline:
            return None
        return TimelineState(self._cluster.leads, self._records, self._bytes)

    def write(self, seen: Observation, report: FlowReport, topics: FlowTopics) -> None:
        """Write the records of this round without waiting for the cluster."""
        self._cluster.poll()
        for stage in self._delivered - self._missed:
            self._health.record_success(self._alias, stage)
        self._delivered.clear()
        # All again after a failure: which of the round's records arrived is not worth tracking, and
        # a record that is written twice says the same.
        missed, self._missed = self._missed, set()
        leads = self._cluster.leads
        if CollectionStage.STATE in missed or not leads:
            self._state.reset()
        if CollectionStage.TIMELINE in missed or not leads:
            self._timeline.reset()
        if seen.target_readable and self._cluster.can_write(CollectionStage.STATE):
            for state_key, state in self._state.due(seen, report, topics.unsaved_losses()):
                self._send(CollectionStage.STATE, state_key, state)
        if self._cluster.can_write(CollectionStage.TIMELINE):
            for record in self._timeline.due(seen, topics.unchanged):
                key, value = record.encode_key(), record.encode_value()
                self._send(CollectionStage.TIMELINE, key, value)
                self._records += 1
                self._bytes += len(key) + len(value)

    def _send(self, stage: CollectionStage, key: bytes, value: bytes | None) -> None:
        self._cluster.send(stage, key, value, lambda found: self._report(stage, found))

    def _report(self, stage: CollectionStage, result: DeliveryResult) -> None:
        if isinstance(result, KafkaOperationError):
            self._missed.add(stage)
            self._health.record_failure(self._alias, stage, result.kind, str(result))
        else:
            self._delivered.add(stage)


_TOPIC_RETRY_SECONDS = 30.0
_TOPIC_TIMEOUT_SECONDS = 10.0

_SETTINGS = {
    "linger.ms": "100",
    "compression.type": "lz4",
    "batch.size": "262144",
    "queue.buffering.max.messages": "100000",
}

_STATE_SETTINGS = {
    "cleanup.policy": "compact",
    # Small segments: the log cleaner leaves the active one alone, so what is read at a start is the
    # newest record of each key and all records of this segment.
    "segment.bytes": "16777216",
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.2",
}


class ClusterWriter:
    """The producer of the flows to one target, and the election of the replica that writes.

    Replicas take part in the same election if they serve the same flows to the target. Starts with
    the first flow. Results of `send` are reported by `poll`.
    """

    def __init__(
        self, client: ClusterClient, config: ExporterSettings, health: CollectionHealth
    ) -> None:
        self._client = client
        self._health = health
        self._topics = {CollectionStage.STATE: (config.state.topic, _STATE_SETTINGS)}
        if config.timeline.enabled:
            settings = timeline_settings(config.timeline)
            self._topics[CollectionStage.TIMELINE] = (config.timeline.topic, settings)
        if config.writes_arrivals:
            settings = arrivals_settings(config.timeline)
            self._topics[CollectionStage.ARRIVALS] = (config.timeline.arrivals_topic, settings)
        self._replication_factor = config.replication_factor
        self._ready: set[CollectionStage] = set()
        self._producer: RecordProducer | None = None
        self._group: str | None = None
        self._is_started = False
        self._election: Leadership | None = None
        self._leaving = threading.Event()
        self._stopping = threading.Event()
        self._preparation = self._thread(Loop.OWN_TOPICS, self._prepare)
        self._elections = self._thread(Loop.LEADERSHIP, self._take_part)

    def serve(self, flows: Iterable[Flow]) -> None:
        """Take part in the election for *flows*, which replace earlier ones; returns at once."""
        group = leader_group(flows)
        if group == self._group:
            return
        self._group = group
        self._leaving.set()
        if not self._is_started:
            self._is_started = True
            self._preparation.start()

    @property
    def leads(self) -> bool:
        """Whether this replica writes."""
        return self._election is not None and self._election.leading

    def can_write(self, stage: CollectionStage) -> bool:
        """Whether this replica writes, and the topic of *stage* exists."""
        return self.leads and stage in self._ready

    def send(
        self,
        stage: CollectionStage,
        key: bytes,
        value: bytes | None,
        on_delivery: Callable[[DeliveryResult], None],
    ) -> None:
        """Write to the topic of *stage*, which `can_write`, without waiting for the cluster."""
        if self._producer is not None:
            topic, _settings = self._topics[stage]
            self._producer.send(topic, key=key, value=value, on_delivery=on_delivery)

    def poll(self) -> None:
        """Report the results that have arrived, of all flows."""
        if self._producer is not None:
            self._producer.poll(0)

    def stop(self) -> None:
        """Leave the election and wait for pending records."""
        self._stopping.set()
        self._leaving.set()
        self._preparation.join()
        self._elections.join()
        if self._producer is not None:
            self._producer.close()

    def _thread(self, loop: Loop, run: Callable[[], None]) -> SupervisedThread:
        return SupervisedThread(
            loop, self._client.alias, run, self._stopping, self._health.record_loop_failure
        )

    def _prepare(self) -> None:
        """Create the topics; the election needs that of the state."""
        while not self._stopping.is_set():
            for stage in self._topics.keys() - self._ready:
                self._prepare_topic(stage, *self._topics[stage])
            if self._producer is None and CollectionStage.STATE in self._ready:
                self._producer = RecordProducer(self._client.handles, settings=_SETTINGS)
                self._elections.start()
            if self._ready == self._topics.keys():
                return
            self._stopping.wait(_TOPIC_RETRY_SECONDS)

    def _prepare_topic(
        self, stage: CollectionStage, topic: str, settings: Mapping[str, str]
    ) -> None:
        try:
            with self._health.stage(self._client.alias, stage):
                # No permission to create the topic is needed if it exists.
                if not self._client.topic_exists(topic, _TOPIC_TIMEOUT_SECONDS):
                    self._client.create_topic(
                        topic,
                        partitions=1,
                        timeout=_TOPIC_TIMEOUT_SECONDS,
                        replication_factor=self._replication_factor,
                        config=settings,
                    )
        except KafkaOperationError:
            return
        self._ready.add(stage)

    def _take_part(self) -> None:
        """Take part in the election of the flows, and in another one when they change."""
        topic, _settings = self._topics[CollectionStage.STATE]
        while not self._stopping.is_set():
            self._leaving.clear()
            if self._group is None:
                self._leaving.wait()
                continue
            self._election = Leadership(
                self._client.handles, group=self._group, topic=topic, on_problem=self._failed
            )
            self._election.run(self._leaving)

    def _failed(self, problem: KafkaOperationError) -> None:
        self._health.record_failure(
            self._client.alias, CollectionStage.LEADERSHIP, problem.kind, str(problem)
        )


def leader_group(flows: Iterable[Flow]) -> str | None:
    """The consumer group of the election among replicas that serve *flows*; None without any."""
    # Replicas with other flows elect on their own: as members of one group, a replica could lead
    # that does not have the flow.
    slugs = sorted(flow.slug for flow in flows)
    if not slugs:
        return None
    if len(slugs) == 1:
        return f"{LEADER_GROUPS}{slugs[0]}"
    digest = hashlib.sha256("\n".join(slugs).encode()).hexdigest()[:12]
    return f"{LEADER_GROUPS}{len(slugs)}-flows-{digest}"
