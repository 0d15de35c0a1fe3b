"""State of one flow from MirrorMaker 2's internal topics, built record by record.

One thread applies records; others take views. Nothing here reads from Kafka.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from mm2slo_core.indicators.flow_state import TaskCommits
from mm2slo_core.indicators.group_readiness import NewestCheckpoint, OffsetMap
from mm2slo_core.mm2_config.running_settings import RunningConnectors
from mm2slo_core.offset_translation import (
    Failover,
    Head,
    SyncRuns,
    TransactionalCommits,
)
from mm2slo_core.records.connect_records import (
    ConnectState,
    SourceOffset,
    decode_status,
)
from mm2slo_core.records.mirror_records import Checkpoint, DecodeError, OffsetSync, Tombstone
from mm2slo_core.state_record import State, StateKey, decode_state
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import InternalsView, NewestSync, SavedState
from mm2slo_kafka.connector_configs import ConnectorConfigs
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
    """The exporter's own topic of losses, verdicts and recovery points."""


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
        self._is_complete = False
        """Whether all topics were read to their end: records are received as they are written."""
        self._lock = threading.Lock()
        self._syncs = OffsetSyncs(
            self._lock, dense=dense, forgetful=forgetful_connector is not None
        )
        self._forgetful_connector = forgetful_connector
        self._detects_transactions = detects_transactions
        self._committed: dict[TopicPartition, int] = {}
        self._commits = TransactionalCommits()
        self._task_commits: dict[int, float] = {}
        self._checkpoints: defaultdict[str, dict[TopicPartition, NewestCheckpoint]] = defaultdict(
            dict
        )
        self._states: dict[tuple[str, int | None], str] = {}
        self._configs = ConnectorConfigs(connectors)
        self._heartbeats = ConnectorConfigs()
        self._state_records: dict[StateKey, State] = {}
        self._saved: SavedState | None = SavedState()
        """None after a change."""
        self._view: InternalsView | None = None
        """The last one; None after a change."""
        self._topics: dict[
            InternalTopic, tuple[Callable[[TailRecord], None], tuple[Callable[[], None], ...]]
        ] = {
            InternalTopic.OFFSET_SYNCS: (self._syncs.apply, (self._syncs.clear,)),
            InternalTopic.COMMITTED_OFFSETS: (
                self._apply_committed,
                (self._committed.clear, self._commits.clear),
            ),
            InternalTopic.CHECKPOINTS: (self._apply_checkpoint, (self._checkpoints.clear,)),
            InternalTopic.STATUS: (self._apply_status, (self._states.clear,)),
            InternalTopic.CONNECTOR_CONFIGS: (self._configs.apply, (self._configs.clear,)),
            InternalTopic.HEARTBEAT_CONFIGS: (self._heartbeats.apply, (self._heartbeats.clear,)),
            InternalTopic.STATE: (self._apply_state, (self._state_records.clear,)),
        }
        """How a record is applied, and what is cleared when the topic is read again."""

    def apply(self, topic: InternalTopic, records: Iterable[TailRecord]) -> None:
        """Apply records in log order; malformed records are counted and skipped."""
        apply, _clear = self._topics[topic]
        with self._lock:
            for record in records:
                self._view = None
                try:
                    apply(record)
                except DecodeError as error:
                    self._malformed(topic, error.reason)

    def read_up_to(self, topic: InternalTopic, positions: Mapping[int, int | None]) -> None:
        """State up to which offset each partition of *topic* was read."""
        if topic is InternalTopic.COMMITTED_OFFSETS:
            with self._lock:
                # A transaction's markers take offsets without records: positions show them.
                self._commits.read_up_to(positions)

    def clear(self, topic: InternalTopic) -> None:
        """Clear the state of a topic that is read from its start again."""
        with self._lock:
            for clear in self._topics[topic][1]:
                clear()
            self._saved = self._view = None
            self._is_complete = False

    def view(self, waiting_for: tuple[str, ...]) -> InternalsView:
        """A copy of the current state; the same object while nothing changes."""
        with self._lock:
            self._is_complete = not waiting_for
            is_transactional = self._is_transactional
            held = self._view
            if (
                held is not None
                and held.waiting_for == waiting_for
                and held.connectors.transactional == is_transactional
            ):
                return held
            if is_transactional:
                self._syncs.assume_sparse()
            if self._saved is None:
                self._saved = SavedState.of(self._state_records)
            tasks = {task for name, task in self._states if name == self._source_connector}
            self._view = InternalsView(
                syncs=dict(self._syncs.newest),
                offset_map=self._syncs.offset_map,
                committed=dict(self._committed),
                checkpoints={group: dict(newest) for group, newest in self._checkpoints.items()},
                states=dict(self._states),
                assigned=self._configs.assigned(self._source_connector, tasks),
                assignments=self._configs.existing(self._source_connector, tasks),
                task_commits=self._task_commits_of,
                connectors=RunningConnectors(
                    dict(self._configs.by_name),
                    self._heartbeats.by_name.get(self._heartbeat_connector),
                    is_transactional,
                ),
                translation_restarted_at=self._syncs.restarted_at,
                saved=self._saved,
                waiting_for=waiting_for,
            )
            return self._view

    @property
    def _is_transactional(self) -> bool:
        return self._detects_transactions and self._configs.is_transactional(
            self._source_connector, self._commits
        )

    def _apply_committed(self, record: TailRecord) -> None:
        self._commits.add_record(record.partition, record.offset)
        decoded = SourceOffset.decode(record.key, record.value)
        if decoded is None:
            return
        key = decoded.key
        # The offsets topic of a Connect cluster has the offsets of all its connectors, and one
        # connector may have had another source before it was reconfigured.
        if key.connector != self._source_connector or key.cluster != self._source_alias:
            return
        if isinstance(decoded, Tombstone):
            self._committed.pop(key.topic_partition, None)
        else:
            self._committed[key.topic_partition] = decoded.offset
            self._commits.add_commit(record.partition, record.written_at, key.topic_partition)
            task = self._configs.task_of(self._source_connector, key.topic_partition)
            if task is not None:
                self._task_commits[task] = record.written_at

    def _task_commits_of(self, partition: TopicPartition) -> TaskCommits | None:
        with self._lock:
            task = self._configs.task_of(self._source_connector, partition)
            if task is None:
                return None
            newest = max(self._task_commits.values(), default=None)
            return TaskCommits(self._task_commits.get(task), newest)

    def _apply_checkpoint(self, record: TailRecord) -> None:
        decoded = Checkpoint.decode(record.key, record.value)
        if isinstance(decoded, Tombstone):
            checkpoints = self._checkpoints[decoded.key.group]
            checkpoints.pop(decoded.key.topic_partition, None)
            if not checkpoints:
                del self._checkpoints[decoded.key.group]
            return
        written_at = record.written_at
        received_at = time.time() if self._is_complete else written_at
        self._checkpoints[decoded.group][decoded.topic_partition] = NewestCheckpoint(
            decoded.upstream_offset, decoded.downstream_offset, written_at, received_at
        )

    def _apply_status(self, record: TailRecord) -> None:
        decoded = decode_status(record.key, record.value)
        if decoded is None:
            return
        if isinstance(decoded, Tombstone):
            self._states.pop((decoded.key.connector, decoded.key.task), None)
        elif decoded.connector in self._connectors:
            task = decoded.task
            self._states[decoded.connector, task] = decoded.state
            is_task_start = task is not None and decoded.state is ConnectState.RUNNING
            if is_task_start and decoded.connector == self._forgetful_connector:
                self._syncs.checkpoint_task_started(record.written_at)

    def _apply_state(self, record: TailRecord) -> None:
        key = StateKey.decode(record.key)
        # One topic has the state of all flows to this target.
        if key.flow != self._flow_slug:
            return
        self._saved = None
        if record.value is None:
            self._state_records.pop(key, None)
        else:
            self._state_records[key] = decode_state(key, record.value)


class OffsetSyncs:
    """The offset syncs of a flow, by source partition.

    Changed and read under *lock*, which the offset maps take themselves.
    """

    def __init__(self, lock: threading.Lock, *, dense: bool, forgetful: bool) -> None:
        """*dense*: offsets of both sides are equally dense; *forgetful*: before Kafka 3.7.1."""
        self.newest: dict[TopicPartition, NewestSync] = {}
        self._lock = lock
        self._dense = dense
        self._runs: dict[TopicPartition, SyncRuns] = {}
        self._restarted = _RestartedTranslation() if forgetful else None

    def apply(self, record: TailRecord) -> None:
        """Take a record. Raises DecodeError."""
        decoded = OffsetSync.decode(record.key, record.value)
        if isinstance(decoded, Tombstone):
            self.newest.pop(decoded.key, None)
            self._runs.pop(decoded.key, None)
            if self._restarted is not None:
                self._restarted.remove(decoded.key)
            return
        partition, upstream, downstream = decoded
        # MirrorSourceTask sends a sync when the target has acknowledged the record, so the newest
        # one proves the position, whereas Connect's commit is up to a flush interval behind.
        self.newest[partition] = NewestSync(upstream, downstream, record.written_at)
        if self._restarted is not None:
            self._restarted.add(decoded, record.written_at)
        runs = self._runs.get(partition)
        if runs is None:
            runs = self._runs[partition] = SyncRuns(dense=self._dense)
        runs.add(upstream, downstream)

    def clear(self) -> None:
        self.newest.clear()
        self._runs.clear()
        if self._restarted is not None:
            self._restarted.clear()

    def assume_sparse(self) -> None:
        """MirrorMaker 2 writes in transactions: markers take offsets on the target."""
        if self._dense:
            self._dense = False
            for runs in self._runs.values():
                runs.assume_sparse()

    def checkpoint_task_started(self, at: float) -> None:
        """Forget as MirrorMaker 2 before Kafka 3.7.1 does."""
        if self._restarted is not None:
            self._restarted.restart(at, self.newest)

    @property
    def restarted_at(self) -> float | None:
        """When MirrorMaker 2 before Kafka 3.7.1 restarted and forgot earlier offset syncs."""
        return None if self._restarted is None else self._restarted.restarted_at

    def offset_map(self, partition: TopicPartition) -> OffsetMap | None:
        """Offset translation by the offset syncs; None without any."""
        runs = self._runs.get(partition)
        if runs is None:
            return None
        return _LockedOffsetMap(partition, runs, self._restarted, self._lock)


class _LockedOffsetMap:
    """An offset map that is read while the tail adds to it."""

    __slots__ = ("_lock", "_partition", "_restarted", "_runs")

    def __init__(
        self,
        partition: TopicPartition,
        runs: SyncRuns,
        restarted: _RestartedTranslation | None,
        lock: threading.Lock,
    ) -> None:
        self._partition = partition
        self._runs = runs
        self._restarted = restarted
        self._lock = lock

    def failover(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Failover | None:
        with self._lock:
            return self._runs.failover(upstream_offset, downstream_offset, head)

    def reaches(self, upstream_offset: int) -> bool:
        with self._lock:
            if self._restarted is None or self._restarted.restarted_at is None:
                return self._runs.reaches(upstream_offset)
            return self._restarted.reaches(self._partition, upstream_offset)


class _RestartedTranslation:
    """Of the syncs before the restart, only the newest of each partition is used (KAFKA-15905).

    A restart is the newest state RUNNING of a checkpoint task, which Connect writes at its start;
    several tasks count as one.
    """

    def __init__(self) -> None:
        self.restarted_at: float | None = None
        # The upstream offsets of the oldest sync that is used and of the newest one: Kafka's store
        # keeps 64 syncs of a partition, and the oldest is the last one that it drops.
        self._used: dict[TopicPartition, tuple[int, int]] = {}
        self._is_running = False

    def clear(self) -> None:
        """Drop all syncs: the topic is read from its start again."""
        self._used.clear()
        self._is_running = False

    def restart(self, at: float, newest: Mapping[TopicPartition, NewestSync]) -> None:
        """Restart with the *newest* sync of each partition, unless a later restart is known."""
        if self.restarted_at is None or at > self.restarted_at:
            self.restarted_at = at
            self._is_running = False
            self._used = {key: (sync.upstream, sync.upstream) for key, sync in newest.items()}

    def add(self, sync: OffsetSync, at: float) -> None:
        """Add a sync that was sent at *at*; the restart before it must be known."""
        if self.restarted_at is not None and at > self.restarted_at:
            self._is_running = True
        partition, upstream, _ = sync
        oldest, last = self._used.get(partition, (upstream, upstream))
        # Source offsets that go back clear Kafka's store.
        is_first = upstream < last or not self._is_running
        self._used[partition] = (upstream if is_first else oldest, upstream)

    def remove(self, partition: TopicPartition) -> None:
        self._used.pop(partition, None)

    def reaches(self, partition: TopicPartition, upstream_offset: int) -> bool:
        """Whether a sync at or below *upstream_offset* is used; only after a restart."""
        self._is_running = True
        used = self._used.get(partition)
        return used is not None and used[0] <= upstream_offset
