"""Drift between a topic, its copy, and MirrorMaker 2's assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.topic_drift import SyncedSettings
    from mm2slo_core.topic_selection import TopicPair
    from mm2slo_exporter.observation import Observation


class SettingsDrift:
    """The settings in which a topic and its copy differ."""

    def __init__(self) -> None:
        self._compared: tuple[object, object] = (None, None)
        self._names: tuple[str, ...] = ()

    def names(
        self, seen: Observation, pair: TopicPair, settings: SyncedSettings
    ) -> tuple[str, ...]:
        """Names of the settings that differ; computed again only after a new read."""
        source = seen.source.topic_configs.get(pair.source)
        target = seen.target.topic_configs.get(pair.target)
        if source is None or target is None:
            return ()
        before_source, before_target = self._compared
        if source is not before_source or target is not before_target:
            self._compared = (source, target)
            self._names = tuple(found.name for found in settings.drift(source, target))
        return self._names


def count_assigned_missing(seen: Observation, pair: TopicPair) -> int | None:
    """Partitions that are assigned to a task but missing on the target; None if not known."""
    assigned = seen.internals.assigned
    if assigned is None or seen.target.topics_read_at is None or not pair.target:
        return None
    partitions = seen.plan.partitions(pair.source, seen.source.topics.get(pair.source, 0))
    existing = seen.target.topics.get(pair.target, 0)
    return sum(map(assigned.__contains__, partitions[existing:]))


def count_unassigned(seen: Observation, pair: TopicPair) -> int | None:
    """Source partitions that are assigned to no task; None while assignments are unknown."""
    assigned = seen.internals.assigned
    if assigned is None:
        return None
    partitions = seen.plan.partitions(pair.source, seen.source.topics.get(pair.source, 0))
    return len(partitions) - sum(map(assigned.__contains__, partitions))
