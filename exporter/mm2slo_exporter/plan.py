"""Which topics of a flow are watched, and where their copies live on the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mm2slo_core.selection import TopicPair


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The topics that MirrorMaker 2 should copy for one flow, by its own selection rules."""

    pairs: tuple[TopicPair, ...] = ()

    def source_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """Every partition of the source topics; *counts* are the source's partition counts."""
        return _partitions((pair.source for pair in self.pairs), counts)

    def target_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """Every partition of the copies that exist; *counts* are the target's."""
        return _partitions((pair.target for pair in self.pairs), counts)


class KeptPartitions:
    """One side's partitions, made again only when plan or counts were replaced by others.

    The same tuples from round to round: thousands of keys are then compared by identity alone.
    """

    def __init__(
        self, of: Callable[[FlowPlan, Mapping[str, int]], tuple[TopicPartition, ...]]
    ) -> None:
        self._of = of
        self._made_for: tuple[FlowPlan, Mapping[str, int]] | None = None
        self._partitions: tuple[TopicPartition, ...] = ()

    def of(self, plan: FlowPlan, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """The partitions of *plan* by *counts*, which are both never changed in place."""
        held = self._made_for
        if held is None or held[0] is not plan or held[1] is not counts:
            self._partitions = self._of(plan, counts)
            self._made_for = (plan, counts)
        return self._partitions


def _partitions(topics: Iterable[str], counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic, partition)
        for topic in topics
        for partition in range(counts.get(topic, 0))
    )
