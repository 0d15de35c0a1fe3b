"""The topics of a flow and their copies on the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mm2slo_core.topic_selection import TopicPair


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The topics that MirrorMaker 2 replicates for one flow, by its selection rules."""

    pairs: tuple[TopicPair, ...] = ()

    def source_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """All partitions of the source topics; *counts* are the source's partition counts."""
        return _partitions((pair.source for pair in self.pairs), counts)

    def target_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """All partitions of the existing copies; *counts* are the target's partition counts."""
        return _partitions((pair.target for pair in self.pairs), counts)


class PartitionCache:
    """One side's partitions, computed again only when plan or counts were replaced.

    The same tuples in each round: thousands of keys are then compared by identity alone.
    """

    def __init__(
        self, compute: Callable[[FlowPlan, Mapping[str, int]], tuple[TopicPartition, ...]]
    ) -> None:
        self._compute = compute
        self._cached_for: tuple[FlowPlan, Mapping[str, int]] | None = None
        self._partitions: tuple[TopicPartition, ...] = ()

    def get(self, plan: FlowPlan, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """The partitions of *plan* by *counts*; neither may be changed in place."""
        cached_for = self._cached_for
        if cached_for is None or cached_for[0] is not plan or cached_for[1] is not counts:
            self._partitions = self._compute(plan, counts)
            self._cached_for = (plan, counts)
        return self._partitions


def _partitions(topics: Iterable[str], counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic, partition)
        for topic in topics
        for partition in range(counts.get(topic, 0))
    )
