"""Which topics of a cluster did not move, so that they cannot have been re-created."""

from __future__ import annotations

import threading
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.topology import TopicPartition


class TopicMovement:
    """Compares the readings of end offsets. Thread-safe.

    A re-created topic starts empty: only a topic that had records shows it by its end offsets.
    One that is written fast may have passed its old end at the next reading. Records of a topic
    are lost then, so that any movement counts; of a copy, only an end that has fallen.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moved: set[str] = set()
        self._with_records: set[str] = set()

    def observe(
        self, before: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Compare a reading of topics with the one before it of the same partitions."""
        moved = (each for each, end in ends.items() if before.get(each) != end)
        self._add(ends, () if before is ends else moved)

    def observe_copies(
        self, before: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Compare a reading of copies with the one before it of the same partitions."""
        fallen = (each for each, end in ends.items() if before.get(each, inf) > end)
        self._add(ends, () if before is ends else fallen)

    def _add(
        self, ends: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
    ) -> None:
        moved = {partition.topic for partition in partitions}
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
