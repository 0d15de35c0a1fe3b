"""Offset syncs of a flow: the newest of each partition, and what MirrorMaker 2 makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.flow_offsets import OffsetSyncStore, SyncRuns, Untranslated
from mm2slo_core.records import OffsetSync, Tombstone
from mm2slo_exporter.observation import NewestSync

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from mm2slo_core.flow_offsets import Failover, Head
    from mm2slo_core.group_evidence import OffsetMap
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.tailed_topic import TailRecord


class OffsetSyncs:
    """Changed and read under *lock*, which the offset maps take themselves."""

    def __init__(self, lock: threading.Lock, *, dense: bool, forgetful: bool) -> None:
        """*dense*: offsets of both sides are equally dense; *forgetful*: before Kafka 3.7.1."""
        self.newest: dict[TopicPartition, NewestSync] = {}
        self._lock = lock
        self._dense = dense
        self._runs: dict[TopicPartition, SyncRuns] = {}
        self._restarted = _RestartedTranslation() if forgetful else None

    def apply(self, record: TailRecord) -> None:
        """Take a record. Raises DecodeError."""
        found = OffsetSync.decode(record.key, record.value)
        if isinstance(found, Tombstone):
            self.newest.pop(found.key, None)
            self._runs.pop(found.key, None)
            if self._restarted is not None:
                self._restarted.remove(found.key)
            return
        partition, upstream, downstream = found
        self.newest[partition] = NewestSync(upstream, downstream, record.written_at)
        if self._restarted is not None:
            self._restarted.add(found, record.written_at)
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
            newest = (OffsetSync(key, s.upstream, s.downstream) for key, s in self.newest.items())
            self._restarted.restart(at, newest)

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
        self._store = OffsetSyncStore(latest_only=True)

    def clear(self) -> None:
        """Drop all syncs: the topic is read from its start again."""
        self._store = OffsetSyncStore(latest_only=True)

    def restart(self, at: float, newest: Iterable[OffsetSync]) -> None:
        """Restart with the *newest* sync of each partition, unless a later restart is known."""
        if self.restarted_at is not None and at <= self.restarted_at:
            return
        self.restarted_at = at
        self.clear()
        for sync in newest:
            self._store.add(sync)

    def add(self, sync: OffsetSync, at: float) -> None:
        """Add a sync that was sent at *at*; the restart before it must be known."""
        if self.restarted_at is not None and at > self.restarted_at:
            self._store.finish_initial_read()
        self._store.add(sync)

    def remove(self, partition: TopicPartition) -> None:
        self._store.remove(partition)

    def reaches(self, partition: TopicPartition, upstream_offset: int) -> bool:
        """Whether a sync at or below *upstream_offset* is used; only after a restart."""
        self._store.finish_initial_read()
        found = self._store.translate_downstream(partition, upstream_offset)
        return not isinstance(found, Untranslated)
