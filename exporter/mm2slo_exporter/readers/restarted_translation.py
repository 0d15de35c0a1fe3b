"""Offset syncs by which MirrorMaker 2 before Kafka 3.7.1 translates after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.flow_offsets import OffsetSyncStore, Untranslated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.records import OffsetSync
    from mm2slo_core.topology import TopicPartition


class RestartedTranslation:
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
