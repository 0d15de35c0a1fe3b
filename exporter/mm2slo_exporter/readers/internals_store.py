"""State of one flow from MirrorMaker 2's internal topics, built record by record.

One thread applies records; others take views. Nothing here reads from Kafka.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mm2slo_core.flow_offsets import SyncRuns
from mm2slo_core.mm2_config.observed_settings import RunningConnectors
from mm2slo_core.records import (
    Checkpoint,
    ConnectorConfig,
    ConnectState,
    DecodeError,
    OffsetSync,
    SourceOffset,
    TaskAssignment,
    TaskFencing,
    TaskStatus,
    Tombstone,
    decode_config,
    decode_status,
)
from mm2slo_core.state_record import StateKey, decode_state
from mm2slo_core.transactional_commits import TransactionalCommits
from mm2slo_exporter.observation import InternalsView, NewestCheckpoint, NewestSync
from mm2slo_exporter.readers.restarted_translation import RestartedTranslation
from mm2slo_exporter.state_records.saved_state import SavedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mm2slo_core.flow_offsets import Bounds, Head
    from mm2slo_core.group_evidence import OffsetMap
    from mm2slo_core.records import ConnectorStatus
    from mm2slo_core.state_record import State
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.tailed_topic import TailRecord


class InternalTopic(StrEnum):
    """The internal topics of a flow; values of the label `kind` of malformed records."""

    OFFSET_SYNCS = "offset_syncs"
    COMMITTED_OFFSETS = "committed_offsets"
    CHECKPOINTS = "checkpoints"
    STATUS = "status"
    CONNECTOR_CONFIGS = "connector_configs"
    HEARTBEAT_CONFIGS = "heartbeat_configs"
    """The connector configurations of the opposite flow, which writes the heartbeats."""
    STATE = "state"
    """That of mm2slo itself."""


class _Clearable(Protocol):
    """State that is dropped when its topic is read from its start again."""

    def clear(self) -> None:
        """Drop everything."""


class InternalsStore:
    """The newest value of each key in the internal topics of one flow."""

    def __init__(
        self,
        *,
        flow_slug: str,
        source_alias: str,
        source_connector: str,
        connectors: frozenset[str],
        heartbeat_connector: str,
        malformed: Callable[[InternalTopic, str], None],
        dense: bool = True,
        detects_transactions: bool = True,
        forgetful_connector: str | None = None,
    ) -> None:
        """*heartbeat_connector* is that of the opposite flow.

        *forgetful_connector*: the checkpoint connector before Kafka 3.7.1. The status topic must
        then be read before the offset syncs.
        """
        self._flow_slug = flow_slug
        self._source_alias = source_alias
        self._source_connector = source_connector
        self._connectors = connectors
        self._heartbeat_connector = heartbeat_connector
        self._malformed = malformed
        self._lock = threading.Lock()
        self._syncs: dict[TopicPartition, NewestSync] = {}
        self._runs: dict[TopicPartition, SyncRuns] = {}
        self._dense = dense
        self._detects_transactions = detects_transactions
        self._forgetful_connector = forgetful_connector
        self._restarted = RestartedTranslation() if forgetful_connector else None
        self._committed: dict[TopicPartition, int] = {}
        self._commits = TransactionalCommits()
        self._checkpoints: defaultdict[str, dict[TopicPartition, NewestCheckpoint]] = defaultdict(
            dict
        )
        self._states: dict[tuple[str, int | None], str] = {}
        self._assignments: dict[int, tuple[TopicPartition, ...]] = {}
        self._settings: dict[str, ConnectorConfig] = {}
        self._fenced = False
        self._heartbeats: dict[str, ConnectorConfig] = {}
        self._state_records: dict[StateKey, State] = {}
        self._saved: SavedState | None = SavedState()
        """None after a change."""
        self._appliers = {
            InternalTopic.OFFSET_SYNCS: self._apply_sync,
            InternalTopic.COMMITTED_OFFSETS: self._apply_committed,
            InternalTopic.CHECKPOINTS: self._apply_checkpoint,
            InternalTopic.STATUS: self._apply_status,
            InternalTopic.CONNECTOR_CONFIGS: self._apply_config,
            InternalTopic.HEARTBEAT_CONFIGS: self._apply_heartbeat_config,
            InternalTopic.STATE: self._apply_state,
        }

    def apply(self, topic: InternalTopic, records: Iterable[TailRecord]) -> None:
        """Apply records in log order; malformed records are counted and skipped."""
        apply = self._appliers[topic]
        with self._lock:
            for record in records:
                try:
                    apply(record)
                except DecodeError as error:
                    self._malformed(topic, error.reason)

    def read_up_to(self, topic: InternalTopic, positions: Mapping[int, int | None]) -> None:
        """State up to which offset each partition of *topic* was read."""
        if topic is InternalTopic.COMMITTED_OFFSETS:
            with self._lock:
                self._commits.read_up_to(positions)

    def clear(self, topic: InternalTopic) -> None:
        """Clear the state of a topic that is read from its start again."""
        held: dict[InternalTopic, tuple[_Clearable, ...]] = {
            InternalTopic.OFFSET_SYNCS: (self._syncs, self._runs),
            InternalTopic.COMMITTED_OFFSETS: (self._committed, self._commits),
            InternalTopic.CHECKPOINTS: (self._checkpoints,),
            InternalTopic.STATUS: (self._states,),
            InternalTopic.CONNECTOR_CONFIGS: (self._assignments, self._settings),
            InternalTopic.HEARTBEAT_CONFIGS: (self._heartbeats,),
            InternalTopic.STATE: (self._state_records,),
        }
        with self._lock:
            for container in held[topic]:
                container.clear()
            if self._restarted is not None and topic is InternalTopic.OFFSET_SYNCS:
                self._restarted.clear()
            self._saved = None

    def view(self, waiting_for: tuple[str, ...]) -> InternalsView:
        """Copy the current state."""
        with self._lock:
            if self._dense and self._is_transactional:
                self._dense = False
                for runs in self._runs.values():
                    runs.assume_sparse()
            if self._saved is None:
                self._saved = SavedState.of(self._state_records)
            checkpoint_connectors = (
                config.settings.get("sync.group.offsets.enabled") == "true"
                for config in self._settings.values()
            )
            return InternalsView(
                syncs=dict(self._syncs),
                offset_map=self.offset_map,
                committed=dict(self._committed),
                checkpoints={group: dict(found) for group, found in self._checkpoints.items()},
                states=dict(self._states),
                assigned=self._assigned(),
                connectors=RunningConnectors(
                    dict(self._settings),
                    self._heartbeats.get(self._heartbeat_connector),
                    self._is_transactional,
                ),
                sync_group_offsets=any(checkpoint_connectors),
                translation_restarted_at=(
                    None if self._restarted is None else self._restarted.restarted_at
                ),
                saved=self._saved,
                waiting_for=waiting_for,
            )

    def offset_map(self, partition: TopicPartition) -> OffsetMap | None:
        """Offset translation by the offset syncs; None without any."""
        with self._lock:
            runs = self._runs.get(partition)
        if runs is None:
            return None
        restarted, reaches = self._restarted, runs.reaches
        if restarted is not None and restarted.restarted_at is not None:
            reaches = partial(restarted.reaches, partition)
        return _LockedOffsetMap(runs, reaches, self._lock)

    @property
    def _is_transactional(self) -> bool:
        """Whether the worker has exactly-once support.

        Fenced tasks are a hint only: the record remains when it is switched off.
        """
        return self._detects_transactions and self._fenced and self._commits.found is True

    def _assigned(self) -> frozenset[TopicPartition] | None:
        """Partitions of all existing tasks; None while no assignment is known.

        Configurations of removed tasks stay in the topic; the status topic lists existing tasks.
        """
        if not self._assignments:
            return None
        existing = {task for name, task in self._states if name == self._source_connector}
        return frozenset(
            partition
            for task, partitions in self._assignments.items()
            if task in existing or not existing
            for partition in partitions
        )

    def _apply_sync(self, record: TailRecord) -> None:
        found = OffsetSync.decode(record.key, record.value)
        if isinstance(found, Tombstone):
            self._syncs.pop(found.key, None)
            self._runs.pop(found.key, None)
            if self._restarted is not None:
                self._restarted.remove(found.key)
            return
        partition, upstream, downstream = found
        self._syncs[partition] = NewestSync(upstream, downstream, _seconds(record))
        if self._restarted is not None:
            self._restarted.add(found, _seconds(record))
        runs = self._runs.get(partition)
        if runs is None:
            runs = self._runs[partition] = SyncRuns(dense=self._dense)
        runs.add(upstream, downstream)

    def _apply_committed(self, record: TailRecord) -> None:
        found = SourceOffset.decode(record.key, record.value)
        if found is None:
            return
        key = found.key
        if key.connector != self._source_connector or key.cluster != self._source_alias:
            return
        if isinstance(found, Tombstone):
            self._committed.pop(key.topic_partition, None)
        else:
            self._committed[key.topic_partition] = found.offset
            self._commits.add(
                record.partition, record.offset, _seconds(record), key.topic_partition
            )

    def _apply_checkpoint(self, record: TailRecord) -> None:
        found = Checkpoint.decode(record.key, record.value)
        if isinstance(found, Tombstone):
            of_group = self._checkpoints[found.key.group]
            of_group.pop(found.key.topic_partition, None)
            if not of_group:
                del self._checkpoints[found.key.group]
            return
        self._checkpoints[found.group][found.topic_partition] = NewestCheckpoint(
            found.upstream_offset, found.downstream_offset, _seconds(record)
        )

    def _apply_status(self, record: TailRecord) -> None:
        found = decode_status(record.key, record.value)
        if found is None:
            return
        if isinstance(found, Tombstone):
            self._states.pop((found.key.connector, found.key.task), None)
        elif found.connector in self._connectors:
            task = found.task if isinstance(found, TaskStatus) else None
            self._states[found.connector, task] = found.state
            self._note_restart(found, record)

    def _note_restart(self, found: ConnectorStatus | TaskStatus, record: TailRecord) -> None:
        if self._restarted is None or not isinstance(found, TaskStatus):
            return
        if found.connector == self._forgetful_connector and found.state is ConnectState.RUNNING:
            newest = (
                OffsetSync(partition, each.upstream, each.downstream)
                for partition, each in self._syncs.items()
            )
            self._restarted.restart(_seconds(record), newest)

    def _apply_config(self, record: TailRecord) -> None:
        found = decode_config(record.key, record.value)
        if isinstance(found, ConnectorConfig):
            if found.connector in self._connectors:
                self._settings[found.connector] = found
        elif isinstance(found, TaskFencing):
            self._fenced |= found.connector == self._source_connector
        elif isinstance(found, TaskAssignment):
            if found.connector == self._source_connector:
                self._assignments[found.task] = found.partitions
        elif isinstance(found, Tombstone):
            if found.key.task is None:
                self._settings.pop(found.key.connector, None)
            elif found.key.connector == self._source_connector:
                self._assignments.pop(found.key.task, None)

    def _apply_heartbeat_config(self, record: TailRecord) -> None:
        found = decode_config(record.key, record.value)
        if isinstance(found, ConnectorConfig):
            self._heartbeats[found.connector] = found
        elif isinstance(found, Tombstone) and found.key.task is None:
            self._heartbeats.pop(found.key.connector, None)

    def _apply_state(self, record: TailRecord) -> None:
        key = StateKey.decode(record.key)
        if key.flow != self._flow_slug:
            return
        self._saved = None
        if record.value is None:
            self._state_records.pop(key, None)
        else:
            self._state_records[key] = decode_state(key, record.value)


class _LockedOffsetMap:
    """An offset map that is read while the tail adds to it."""

    __slots__ = ("_lock", "_reaches", "_runs")

    def __init__(
        self, runs: SyncRuns, reaches: Callable[[int], bool], lock: threading.Lock
    ) -> None:
        self._runs = runs
        self._reaches = reaches
        self._lock = lock

    def target_bounds(self, upstream_offset: int, head: Head | None = None) -> Bounds | None:
        with self._lock:
            return self._runs.target_bounds(upstream_offset, head)

    def redelivery_bounds(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Bounds | None:
        with self._lock:
            return self._runs.redelivery_bounds(upstream_offset, downstream_offset, head)

    def reaches(self, upstream_offset: int) -> bool:
        with self._lock:
            return self._reaches(upstream_offset)


def _seconds(record: TailRecord) -> float:
    """When a record was written; MirrorMaker 2 always sets timestamps."""
    return (record.timestamp_ms or 0) / 1000
