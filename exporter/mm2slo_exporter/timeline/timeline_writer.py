"""Writes the watermark timeline of one flow while this process is the leader."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from mm2slo_core.timeline_size import timeline_settings
from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.state.flow_report import TimelineState
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_exporter.timeline.timeline_schedule import TimelineSchedule
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.leadership import Leadership
from mm2slo_kafka.record_producer import RecordProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from mm2slo_core.certain_loss import SavedLoss
    from mm2slo_core.config.exporter_config import TimelineConfig
    from mm2slo_core.topology import Flow, TopicPartition
    from mm2slo_exporter.observation import Observation
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.record_producer import DeliveryResult

logger = logging.getLogger(__name__)

_TOPIC_RETRY_SECONDS = 30.0
_TOPIC_TIMEOUT_SECONDS = 10.0
_BATCHING = {"linger.ms": "100", "compression.type": "lz4", "batch.size": "262144"}


class TimelineWriter:
    """One flow's writer; takes part in the leader election."""

    def __init__(
        self,
        flow: Flow,
        client: ClusterClient,
        properties: Mapping[str, str],
        config: TimelineConfig,
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
        self._schedule = TimelineSchedule(flow)
        self._leadership = Leadership(
            client.handles,
            group=f"mm2slo.timeline.{flow.slug}",
            topic=config.topic,
            on_problem=self._election_failed,
        )
        self._stopping = threading.Event()
        self._preparation = self._thread(Loop.TIMELINE, self._prepare)
        self._election = self._thread(Loop.LEADERSHIP, lambda: self._leadership.run(self._stopping))
        self._producer: RecordProducer | None = None
        self._missed = threading.Event()
        self._records = counted.records_total if counted else 0
        self._bytes = counted.bytes_total if counted else 0

    @property
    def state(self) -> TimelineState:
        return TimelineState(self._leadership.leading, self._records, self._bytes)

    def start(self) -> None:
        """Create the topic if needed and join the election; returns at once."""
        self._preparation.start()

    def stop(self) -> None:
        """Leave the election and wait for pending records."""
        self._stopping.set()
        self._preparation.join()
        self._election.join()
        if self._producer is not None:
            self._producer.close()

    def write(
        self,
        seen: Observation,
        losses: Callable[[TopicPartition], SavedLoss | None],
        unchanged: AbstractSet[str],
    ) -> None:
        """Write the records of this round without waiting for the cluster."""
        if self._producer is None:
            return
        self._producer.poll(0)
        if self._missed.is_set() or not self._leadership.leading:
            self._missed.clear()
            self._schedule.reset()
        if not self._leadership.leading:
            return
        for record in self._schedule.due(seen, losses, unchanged):
            key, value = record.encode_key(), record.encode_value()
            self._producer.send(
                self._config.topic, key=key, value=value, on_delivery=self._delivered
            )
            self._records += 1
            self._bytes += len(key) + len(value)

    def _thread(self, loop: Loop, run: Callable[[], None]) -> SupervisedThread:
        return SupervisedThread(
            loop,
            self._flow.label,
            run,
            stopping=self._stopping,
            on_failure=self._health.record_loop_failure,
        )

    def _prepare(self) -> None:
        """Create the topic; nothing is written until that succeeds."""
        while not self._stopping.is_set():
            try:
                with self._health.stage(self._client.alias, Stage.TIMELINE):
                    # No permission to create the topic is needed if it exists.
                    if not self._client.topic_exists(self._config.topic, _TOPIC_TIMEOUT_SECONDS):
                        self._create_topic()
            except KafkaOperationError:
                self._stopping.wait(_TOPIC_RETRY_SECONDS)
                continue
            self._producer = RecordProducer(
                self._client.alias, self._properties, batching=_BATCHING
            )
            self._election.start()
            return

    def _create_topic(self) -> None:
        self._client.create_topic(
            self._config.topic,
            partitions=1,
            timeout=_TOPIC_TIMEOUT_SECONDS,
            replication_factor=self._config.replication_factor,
            config=timeline_settings(self._config),
        )

    def _delivered(self, result: DeliveryResult) -> None:
        alias = self._client.alias
        if isinstance(result, KafkaOperationError):
            self._missed.set()
            self._health.record_failure(alias, Stage.TIMELINE, result.kind, str(result))
        else:
            self._health.record_success(alias, Stage.TIMELINE)

    def _election_failed(self, problem: KafkaOperationError) -> None:
        self._health.record_failure(
            self._client.alias, Stage.LEADERSHIP, problem.kind, str(problem)
        )
