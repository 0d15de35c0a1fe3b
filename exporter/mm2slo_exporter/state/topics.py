"""Topics of a flow over time: their partitions, drift between the clusters, re-creation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.drift import TopicEpochs
from mm2slo_core.retention import RetentionPolicy
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.observation import OffsetsRead
from mm2slo_exporter.state.following import Following
from mm2slo_exporter.state.model import TopicState
from mm2slo_exporter.state.partition import FlowRules, PartitionReading, PartitionTracker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.drift import SyncedSettings
    from mm2slo_core.selection import TopicPair
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.model import PartitionState
    from mm2slo_exporter.timeline.restore import Remembered

_UNREAD = OffsetsRead()


class TopicTracker:
    """One replicated topic over time."""

    def __init__(self) -> None:
        self._partitions: dict[int, PartitionTracker] = {}
        self._source_epochs = TopicEpochs()
        self._target_epochs = TopicEpochs()
        self._keys: list[tuple[TopicPartition, TopicPartition]] = []
        self._keys_for: TopicPair | None = None
        self._policy: RetentionPolicy | None = None
        self._compared: tuple[object, object] = (None, None)
        self._differing: tuple[str, ...] = ()
        self._policy_of: Mapping[str, str] | None = None
        self._following: Following | None = None

    def partition(self, number: int) -> PartitionTracker:
        """The tracker of one partition, made on first use."""
        tracker = self._partitions.get(number)
        if tracker is None:
            tracker = self._partitions[number] = PartitionTracker(number)
        return tracker

    def remember(self, poll: Remembered) -> None:
        """Take what an earlier process saw; polls of an earlier topic of this name are void."""
        if self._source_epochs.observe_id(poll.topic_id):
            self._source_epochs.recreations = 0  # an earlier process counted it
            self._partitions.clear()
        tracker = self.partition(poll.partition.partition)
        tracker.remember_arrival(poll.end, poll.times)
        if poll.loss is not None:
            tracker.restore_loss(poll.loss)

    def judge(
        self,
        seen: Observation,
        pair: TopicPair,
        rules: FlowRules,
        settings: SyncedSettings,
    ) -> TopicState:
        """Turn one round's figures into what is published."""
        source, target = pair.source, pair.target
        if self._source_epochs.observe_id(seen.source.topic_ids.get(source)):
            for tracker in self._partitions.values():
                tracker.source_recreated()
        self._target_epochs.observe_id(seen.target.topic_ids.get(target))
        count = seen.source.topics.get(source)
        target_count = seen.target.topics.get(target)
        partitions = self._judge_partitions(seen, pair, rules, count or 0)
        source_total = sum(t.source_total for t in self._partitions.values())
        moved_at = waits_since = None
        if not rules.has_positions:
            moved_at, waits_since = self._follow(seen, target, source_total, rules.stall_after)
        return TopicState(
            pair=pair,
            partitions=partitions,
            source_partition_count=count,
            target_partition_count=target_count,
            missing_on_target=target_count is None and seen.target.topics_read_at is not None,
            config_drift=self._config_drift(seen, pair, settings),
            assigned_missing=self._assigned_missing(seen, pair, target_count or 0),
            unassigned=self._unassigned(seen, pair, count or 0),
            source_records_total=source_total,
            replicated_records_total=sum(t.replicated_total for t in self._partitions.values()),
            lost_records_total=sum(t.lost_total for t in self._partitions.values()),
            truncations_total=sum(t.truncations for t in self._partitions.values()),
            source_recreations_total=self._source_epochs.recreations,
            target_recreations_total=self._target_epochs.recreations,
            target_moved_at=moved_at,
            waits_since=waits_since,
        )

    def _follow(
        self, seen: Observation, target: str, source_total: int, grace: float
    ) -> tuple[float | None, float | None]:
        """When the copy last moved, and since when it does not follow."""
        if self._following is None:
            self._following = Following(grace)
        self._following.observe(seen, target, source_total)
        return self._following.target_moved_at, self._following.waits_since

    def _judge_partitions(
        self, seen: Observation, pair: TopicPair, rules: FlowRules, count: int
    ) -> tuple[PartitionState, ...]:
        source = (seen.source_offsets or _UNREAD) if seen.source_readable else _UNREAD
        target = (seen.target_offsets or _UNREAD) if seen.target_readable else _UNREAD
        internals, probes = seen.internals, seen.probes
        policy = self._retention(seen, pair)
        states = []
        for here, there in self._keys_of(pair, count):
            tracker = self.partition(here.partition)
            end = source.ends.get(here)
            if end is not None:
                tracker.observe_source_end(end, source.requested_at, source.answered_at)
            reading = PartitionReading(
                source_end=end,
                source_start=source.starts.get(here),
                stable_end=source.stable_ends.get(here),
                target_end=target.ends.get(there),
                target_start=target.starts.get(there),
                committed=internals.committed.get(here),
                sync=internals.syncs.get(here),
                probe=probes.get(here),
                target_readable=seen.target_readable,
            )
            states.append(tracker.judge(seen.at, reading, rules, policy))
        return tuple(states)

    def _keys_of(
        self, pair: TopicPair, count: int
    ) -> Sequence[tuple[TopicPartition, TopicPartition]]:
        """Each partition on both sides; made again only when the topic grows or is replaced."""
        if len(self._keys) != count or self._keys_for is not pair:
            self._keys = [
                (TopicPartition(pair.source, number), TopicPartition(pair.target, number))
                for number in range(count)
            ]
            self._keys_for = pair
        return self._keys

    def _retention(self, seen: Observation, pair: TopicPair) -> RetentionPolicy | None:
        config = seen.source.retention_configs.get(pair.source)
        if config is not self._policy_of:
            self._policy_of = config
            self._policy = None if config is None else RetentionPolicy.from_topic_config(config)
        return self._policy

    def _config_drift(
        self, seen: Observation, pair: TopicPair, settings: SyncedSettings
    ) -> tuple[str, ...]:
        """Names of the settings that differ; compared again only after they were read again."""
        source = seen.source.topic_configs.get(pair.source)
        target = seen.target.topic_configs.get(pair.target)
        if source is None or target is None:
            return ()
        before_source, before_target = self._compared
        if source is not before_source or target is not before_target:
            self._compared = (source, target)
            self._differing = tuple(found.name for found in settings.drift(source, target))
        return self._differing

    def _assigned_missing(
        self, seen: Observation, pair: TopicPair, target_count: int
    ) -> int | None:
        """Partitions that a task has, while the target has no such partition."""
        assigned = seen.internals.assigned
        if assigned is None or seen.target.topics_read_at is None:
            return None
        return sum(
            1
            for number in range(target_count, seen.source.topics.get(pair.source, 0))
            if (pair.source, number) in assigned
        )

    def _unassigned(self, seen: Observation, pair: TopicPair, count: int) -> int | None:
        """Partitions of the source that no task has; None when assignments are not known."""
        assigned = seen.internals.assigned
        if assigned is None:
            return None
        return sum(1 for number in range(count) if (pair.source, number) not in assigned)
