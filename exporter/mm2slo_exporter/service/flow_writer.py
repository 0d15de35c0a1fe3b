"""Writes the state records and the timeline of one flow while this process is the leader."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from mm2slo_core.timeline_size import timeline_settings
from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.state.flow_report import TimelineState
from mm2slo_exporter.state_records.state_schedule import StateSchedule
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_exporter.timeline.timeline_schedule import TimelineSchedule
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.leadership import Leadership
from mm2slo_kafka.record_producer import RecordProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.config.exporter_config import ExporterConfig
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.flow_report import FlowReport
    from mm2slo_exporter.state.flow_topics import FlowTopics
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.record_producer import DeliveryResult

logger = logging.getLogger(__name__)

_TOPIC_RETRY_SECONDS = 30.0
_TOPIC_TIMEOUT_SECONDS = 10.0
_BATCHING = {"linger.ms": "100", "compression.type": "lz4", "batch.size": "262144"}
_STATE_SETTINGS = {
    "cleanup.policy": "compact",
    # Small segments: what is read at a start is what has not been compacted yet.
    "segment.bytes": "16777216",
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.2",
}


class FlowWriter:
    """One flow's writer; takes part in the leader election."""

    def __init__(
        self,
        flow: Flow,
        client: ClusterClient,
        properties: Mapping[str, str],
        config: ExporterConfig,
        health: Health,
        *,
        counted: TimelineState | None = None,
    ) -> None:
        """Continues the counts of *counted*."""
        self._flow = flow
        self._client = client
        self._properties = properties
        self._config = config
        self._health = health
        self._timeline = TimelineSchedule(flow)
        self._state = StateSchedule(flow)
        self._leadership = Leadership(
            client.handles,
            group=f"mm2slo.leader.{flow.slug}",
            topic=config.state.topic,
            on_problem=self._election_failed,
        )
        self._stopping = threading.Event()
        self._preparation = self._thread(Loop.OWN_TOPICS, self._prepare)
        self._election = self._thread(Loop.LEADERSHIP, lambda: self._leadership.run(self._stopping))
        self._producer: RecordProducer | None = None
        self._ready: set[Stage] = set()
        self._missed: set[Stage] = set()
        self._records = counted.records_total if counted else 0
        self._bytes = counted.bytes_total if counted else 0

    @property
    def timeline_state(self) -> TimelineState | None:
        """What was written to the timeline; None if it is switched off."""
        if not self._config.timeline.enabled:
            return None
        return TimelineState(self._leadership.leading, self._records, self._bytes)

    def start(self) -> None:
        """Create the topics if needed and join the election; returns at once."""
        self._preparation.start()

    def stop(self) -> None:
        """Leave the election and wait for pending records."""
        self._stopping.set()
        self._preparation.join()
        self._election.join()
        if self._producer is not None:
            self._producer.close()

    def write(self, seen: Observation, report: FlowReport, topics: FlowTopics) -> None:
        """Write the records of this round without waiting for the cluster."""
        if self._producer is None:
            return
        self._producer.poll(0)
        missed, self._missed = self._missed, set()
        leads = self._leadership.leading
        if Stage.STATE in missed or not leads:
            self._state.reset()
        if Stage.TIMELINE in missed or not leads:
            self._timeline.reset()
        if leads and seen.target_readable:
            for state_key, state in self._state.due(seen, report, topics.unsaved_losses()):
                self._send(Stage.STATE, self._config.state.topic, state_key, state)
        if leads and Stage.TIMELINE in self._ready:
            for record in self._timeline.due(seen, topics.unchanged):
                key, value = record.encode_key(), record.encode_value()
                self._send(Stage.TIMELINE, self._config.timeline.topic, key, value)
                self._records += 1
                self._bytes += len(key) + len(value)

    def _send(self, stage: Stage, topic: str, key: bytes, value: bytes | None) -> None:
        if self._producer is not None:
            self._producer.send(
                topic, key=key, value=value, on_delivery=lambda found: self._delivered(stage, found)
            )

    def _thread(self, loop: Loop, run: Callable[[], None]) -> SupervisedThread:
        return SupervisedThread(
            loop, self._flow.label, run, self._stopping, self._health.record_loop_failure
        )

    def _prepare(self) -> None:
        """Create the topics; the election needs that of the state."""
        wanted = {Stage.STATE: (self._config.state.topic, _STATE_SETTINGS)}
        if self._config.timeline.enabled:
            settings = timeline_settings(self._config.timeline)
            wanted[Stage.TIMELINE] = (self._config.timeline.topic, settings)
        while not self._stopping.is_set():
            for stage in [each for each in wanted if each not in self._ready]:
                self._prepare_topic(stage, *wanted[stage])
            if self._producer is None and Stage.STATE in self._ready:
                self._producer = RecordProducer(
                    self._client.alias, self._properties, batching=_BATCHING
                )
                self._election.start()
            if self._ready == wanted.keys():
                return
            self._stopping.wait(_TOPIC_RETRY_SECONDS)

    def _prepare_topic(self, stage: Stage, topic: str, settings: Mapping[str, str]) -> None:
        try:
            with self._health.stage(self._client.alias, stage):
                # No permission to create the topic is needed if it exists.
                if not self._client.topic_exists(topic, _TOPIC_TIMEOUT_SECONDS):
                    self._client.create_topic(
                        topic,
                        partitions=1,
                        timeout=_TOPIC_TIMEOUT_SECONDS,
                        replication_factor=self._config.replication_factor,
                        config=settings,
                    )
        except KafkaOperationError:
            return
        self._ready.add(stage)

    def _delivered(self, stage: Stage, result: DeliveryResult) -> None:
        alias = self._client.alias
        if isinstance(result, KafkaOperationError):
            self._missed.add(stage)
            self._health.record_failure(alias, stage, result.kind, str(result))
        else:
            self._health.record_success(alias, stage)

    def _election_failed(self, problem: KafkaOperationError) -> None:
        self._health.record_failure(
            self._client.alias, Stage.LEADERSHIP, problem.kind, str(problem)
        )
