"""Writes the state records and the timeline of one flow while this process is the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.state.flow_report import TimelineState
from mm2slo_exporter.state_records.state_schedule import StateSchedule
from mm2slo_exporter.timeline.timeline_schedule import TimelineSchedule
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.service.cluster_writer import ClusterWriter
    from mm2slo_exporter.state.flow_report import FlowReport
    from mm2slo_exporter.state.flow_topics import FlowTopics
    from mm2slo_kafka.record_producer import DeliveryResult


class FlowWriter:
    """Selects one flow's records and writes them again if they were not delivered."""

    def __init__(
        self,
        flow: Flow,
        cluster: ClusterWriter,
        health: Health,
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
        self._missed: set[Stage] = set()
        self._delivered: set[Stage] = set()
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
        missed, self._missed = self._missed, set()
        leads = self._cluster.leads
        if Stage.STATE in missed or not leads:
            self._state.reset()
        if Stage.TIMELINE in missed or not leads:
            self._timeline.reset()
        if seen.target_readable and self._cluster.can_write(Stage.STATE):
            for state_key, state in self._state.due(seen, report, topics.unsaved_losses()):
                self._send(Stage.STATE, state_key, state)
        if self._cluster.can_write(Stage.TIMELINE):
            for record in self._timeline.due(seen, topics.unchanged):
                key, value = record.encode_key(), record.encode_value()
                self._send(Stage.TIMELINE, key, value)
                self._records += 1
                self._bytes += len(key) + len(value)

    def _send(self, stage: Stage, key: bytes, value: bytes | None) -> None:
        self._cluster.send(stage, key, value, lambda found: self._report(stage, found))

    def _report(self, stage: Stage, result: DeliveryResult) -> None:
        if isinstance(result, KafkaOperationError):
            self._missed.add(stage)
            self._health.record_failure(self._alias, stage, result.kind, str(result))
        else:
            self._delivered.add(stage)
