"""A topic of a flow that leaves no positions: whether its copy moves when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.movement import MovementWatch
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from mm2slo_exporter.observation import Observation


class Following:
    """Counts what is appended to the copy, in whatever partition, and compares the movements."""

    def __init__(self, grace: float) -> None:
        self._watch = MovementWatch(grace)
        self._ends: dict[int, int] = {}
        self._target_total = 0

    @property
    def target_moved_at(self) -> float | None:
        """When the copy last moved; None before it was seen to."""
        return self._watch.moved_at

    @property
    def waits_since(self) -> float | None:
        """Since when the copy stands still though the topic moves; None while it follows."""
        return self._watch.waits_since

    def observe(self, seen: Observation, target: str, source_total: int) -> None:
        """Take one round; one in which a side was not read tells nothing."""
        if not (seen.source_readable and seen.target_readable) or seen.target_offsets is None:
            return
        for number in range(seen.target.topics.get(target, 0)):
            end = seen.target_offsets.ends.get(TopicPartition(target, number))
            if end is None:
                continue
            before = self._ends.get(number, end)
            # A copy that was created anew moves, too.
            self._target_total += end - before if end >= before else end
            self._ends[number] = end
        self._watch.observe(seen.at, source_total, self._target_total)
