"""Finds the topics of which something was read that differs from the round before.

The state of all other topics without a backlog is that of the round before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mm2slo_exporter.observation import OffsetsRead

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from mm2slo_core.topology import TopicPartition
    from mm2slo_exporter.flow_plan import FlowPlan
    from mm2slo_exporter.observation import Observation

_Value = TypeVar("_Value")
_UNREAD = OffsetsRead()


class ChangedTopics:
    """Compares each round with the one remembered last."""

    def __init__(self) -> None:
        self._before: Observation | None = None
        self._plan: FlowPlan | None = None
        self._sources: dict[str, str] = {}

    def remember(self, seen: Observation) -> None:
        """Compare the next round with this one."""
        self._before = seen
        if self._plan is not seen.plan:
            self._plan = seen.plan
            self._sources = {pair.target: pair.source for pair in seen.plan.pairs}

    def forget(self) -> None:
        """Drop the remembered round: any topic may differ from it."""
        self._before = None

    def since_last(self, seen: Observation) -> AbstractSet[str] | None:
        """Source topics with a change; None if any topic may have changed.

        The remembered round is dropped: if this one fails, nothing is known to be unchanged.
        """
        before, self._before = self._before, None
        if before is None or not _comparable(before, seen):
            return None
        source = (before.source_offsets or _UNREAD, seen.source_offsets or _UNREAD)
        target = (before.target_offsets or _UNREAD, seen.target_offsets or _UNREAD)
        of_source = (
            *_differing(source[0].ends, source[1].ends),
            *_differing(source[0].starts, source[1].starts),
            *_differing(source[0].stable_ends, source[1].stable_ends),
            *_differing(before.internals.committed, seen.internals.committed),
            *_differing(before.internals.syncs, seen.internals.syncs),
            *_differing(before.probes, seen.probes),
            *_differing(before.internals.saved.losses, seen.internals.saved.losses),
        )
        of_target = (
            *_differing(target[0].ends, target[1].ends),
            *_differing(target[0].starts, target[1].starts),
        )
        sources = self._sources
        return {partition.topic for partition in of_source} | {
            sources[partition.topic] for partition in of_target if partition.topic in sources
        }


def _comparable(before: Observation, seen: Observation) -> bool:
    """Whether only offsets, internal topics and probes may differ, and all of them were read."""
    if not all(
        each.source_readable and each.target_readable and each.plan is seen.plan
        for each in (before, seen)
    ):
        return False
    if not _same(before.internals.assigned, seen.internals.assigned):
        return False
    return all(
        _same(old.topics, new.topics)
        and _same(old.topic_ids, new.topic_ids)
        and _same(old.topic_configs, new.topic_configs)
        and _same(old.retention_configs, new.retention_configs)
        for old, new in ((before.source, seen.source), (before.target, seen.target))
    )


def _same(old: Any, new: Any) -> bool:
    return old is new or old == new


def _differing(
    old: Mapping[TopicPartition, _Value], new: Mapping[TopicPartition, _Value]
) -> list[TopicPartition]:
    """Keys that are in only one of the mappings, or have another value."""
    if old is new or old == new:
        return []
    changed = [key for key, value in new.items() if old.get(key) != value]
    return [*changed, *(old.keys() - new.keys())]
