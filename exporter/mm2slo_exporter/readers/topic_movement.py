"""Which topics of a cluster did not move, so that they cannot have been re-created."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import TopicPartition


class TopicMovement:
    """Compares the readings of end offsets. Thread-safe.

    A re-created topic starts empty: only a topic that had records shows it by its end offsets.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moved: set[str] = set()
        self._with_records: set[str] = set()

    def observe(
        self, before: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Compare a reading with the one before it of the same partitions."""
        moved = {partition.topic for partition, end in ends.items() if before.get(partition) != end}
        with_records = {partition.topic for partition, end in ends.items() if end}
        with self._lock:
            self._moved |= moved
            self._with_records |= with_records

    def take_unmoved(self) -> set[str]:
        """Topics with records that were read since the last call, and never with another end."""
        with self._lock:
            unmoved = self._with_records - self._moved
            self._moved, self._with_records = set(), set()
        return unmoved
