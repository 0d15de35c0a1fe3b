"""The topics of a flow and their copies on the target."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from mm2slo_core.topology import shared_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.topic_selection import TopicPair
    from mm2slo_core.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The topics that MirrorMaker 2 replicates for one flow, by its selection rules."""

    pairs: tuple[TopicPair, ...] = ()
    _partitions: dict[tuple[str, int], tuple[TopicPartition, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def partitions(self, topic: str, count: int) -> tuple[TopicPartition, ...]:
        """The partitions of a topic on one side."""
        found = self._partitions.get((topic, count))
        if found is None:
            found = tuple(shared_partition(topic, number) for number in range(count))
            self._partitions[topic, count] = found
        return found

    def source_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """All partitions of the source topics; *counts* are the source's partition counts."""
        topics = (pair.source for pair in self.pairs)
        return tuple(chain.from_iterable(self.partitions(t, counts.get(t, 0)) for t in topics))

    def target_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """All partitions of the existing copies; *counts* are the target's partition counts."""
        topics = (pair.target for pair in self.pairs)
        return tuple(chain.from_iterable(self.partitions(t, counts.get(t, 0)) for t in topics))


class PartitionCache:
    """One side's partitions, computed again only when plan or counts were replaced."""

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
