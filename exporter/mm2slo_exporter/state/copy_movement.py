"""Progress of a topic's copy where the engine has no positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.topic_activity import TopicActivityWatch
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from mm2slo_exporter.observation import Observation


class CopyMovement:
    """Counts records appended to the copy and compares them with those of the source topic."""

    def __init__(self, grace: float) -> None:
        self._watch = TopicActivityWatch(grace)
        self._ends: dict[int, int] = {}
        self._target_total = 0

    @property
    def target_moved_at(self) -> float | None:
        """When records were last appended to the copy; None before that was observed."""
        return self._watch.moved_at

    @property
    def backlog_since(self) -> float | None:
        """Since when the topic has grown without its copy; None while it follows."""
        return self._watch.backlog_since

    def observe(self, seen: Observation, target: str, source_total: int) -> None:
        """Process one round; ignored unless both sides were read."""
        if not (seen.source_readable and seen.target_readable) or seen.target_offsets is None:
            return
        for number in range(seen.target.topics.get(target, 0)):
            end = seen.target_offsets.ends.get(TopicPartition(target, number))
            if end is None:
                continue
            before = self._ends.get(number, end)
            # A re-created copy starts at 0 again.
            self._target_total += end - before if end >= before else end
            self._ends[number] = end
        self._watch.observe(seen.at, source_total, self._target_total)
