"""Tracks a topic over time: its partitions, drift between the clusters, re-creations.

Where the engine has no positions, the progress of its copy is tracked.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import TypeVar

from mm2slo_core.indicators.flow_state import TopicActivityWatch
from mm2slo_core.indicators.replication_lag import RetentionPolicy
from mm2slo_core.records.timeline_record import WatermarkRecord
from mm2slo_core.state_record import TopicLosses
from mm2slo_core.topic_selection import SyncedSettings, TopicEpochs, TopicPair
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import Observation, OffsetsRead
from mm2slo_exporter.state.flow_report import PartitionState, TopicState
from mm2slo_exporter.state.partition_reading import FlowRules, PartitionReading
from mm2slo_exporter.state.partition_tracker import PartitionTracker, rests

_Value = TypeVar("_Value")
_UNREAD = OffsetsRead()
_source_total = attrgetter("source_total")
_replicated_total = attrgetter("replicated_total")
_truncations = attrgetter("truncations")


class TopicTracker:
    """One replicated topic over time."""

    def __init__(self) -> None:
        self._partitions: list[PartitionTracker] = []
        self._source_epochs = TopicEpochs()
        self._target_epochs = TopicEpochs()
        self._policy: RetentionPolicy | None = None
        self._policy_of: Mapping[str, str] | None = None
        self._settings_drift = SettingsDrift()
        self._copy_movement: CopyMovement | None = None
        self._topic_ids: Mapping[str, str] = {}
        self._starts_read_at = 0.0
        self._resting: TopicState | None = None
        self._unconfirmed: Sequence[PartitionState] = ()
        """Partitions of a topic at rest that may still confirm a loss."""
        self._repeated: Observation | None = None
        """The last round, if it was only repeated."""
        self._has_history = False
        self.needs_saving = False
        """Whether its losses differ from those in the state topic."""

    def add_history(self, records: Sequence[WatermarkRecord]) -> None:
        """Add polls of an earlier process, newest first, up to a re-creation of the topic."""
        self._resting = None  # its state may differ from that of the last round
        current = self._source_epochs.topic_id
        for record in records:
            if None not in (current, record.topic_id) and record.topic_id != current:
                if not self._has_history:
                    self._source_epochs.recreations += 1  # while no process ran
                    self._has_history = True
                return
            self._has_history = True
            for number, end in zip(record.partitions, record.ends, strict=True):
                if number < len(self._partitions):
                    self._partitions[number].add_past_poll(end, record.times)

    def lacks_arrivals(self, state: TopicState) -> bool:
        """Whether older polls may add arrivals of unreplicated records."""
        return any(
            each.lag_records
            and each.next_offset is not None
            and self._partitions[each.partition].lacks_arrival(each.next_offset)
            for each in state.partitions
        )

    def losses(self) -> TopicLosses:
        """The losses of its partitions."""
        found = {
            tracker.partition: loss.counted
            for tracker in self._partitions
            if (loss := tracker.found_loss) is not None and loss.counted.total
        }
        return TopicLosses(self._source_epochs.topic_id, found)

    def repeat(self, seen: Observation, rules: FlowRules) -> TopicState | None:
        """The state of the last round, if it holds for this one, in which nothing has changed.

        None if the topic must be judged. Gives the same states as judging each round.
        """
        state = self._resting
        if state is None:
            return None
        for partition in self._unconfirmed:
            if self._partitions[partition.partition].confirms_loss(seen.at, partition, rules):
                return None
        if seen.source.topic_ids is not self._topic_ids:
            self._observe_source_id(seen.source.topic_ids, state.pair.source)
        self._repeated = seen
        return state

    def judge(
        self,
        seen: Observation,
        pair: TopicPair,
        rules: FlowRules,
        settings: SyncedSettings,
        flow_replicated_at: float | None = None,
    ) -> TopicState:
        """Turn one observation into the published state.

        *flow_replicated_at*: when the flow last replicated anything with all tasks running.
        """
        if self._repeated is not None:
            # The last of several equal rounds is all that later ones depend on.
            self._judge(self._repeated, pair, rules, settings, flow_replicated_at)
            self._repeated = None
        state = self._judge(seen, pair, rules, settings, flow_replicated_at)
        self._resting = None
        if state.at_rest:
            self._resting = state
            self._unconfirmed = [
                each for each in state.partitions if rules.position_period(each.quality)
            ]
        return state

    def _judge(
        self,
        seen: Observation,
        pair: TopicPair,
        rules: FlowRules,
        settings: SyncedSettings,
        flow_replicated_at: float | None,
    ) -> TopicState:
        source, target = pair.source, pair.target
        self._observe_source_id(seen.source.topic_ids, source)
        self._target_epochs.observe_id(seen.target.topic_ids.get(target))
        count = seen.source.topics.get(source)
        target_count = seen.target.topics.get(target)
        partitions = self._judge_partitions(seen, pair, rules, count or 0, flow_replicated_at)
        trackers = self._partitions
        source_total = sum(map(_source_total, trackers))
        losses = [loss for t in trackers if (loss := t.found_loss) is not None]
        self.needs_saving = any(loss.needs_saving for loss in losses)
        moved_at = backlog_since = None
        if not rules.has_positions:
            moved_at, backlog_since = self._observe_copy(
                seen, target, source_total, rules.stall_after
            )
        return TopicState(
            pair=pair,
            partitions=partitions,
            source_partition_count=count,
            target_partition_count=target_count,
            missing_on_target=bool(target)
            and target_count is None
            and seen.target.topics_read_at is not None,
            config_drift=self._settings_drift.names(seen, pair, settings),
            assigned_missing=count_assigned_missing(seen, pair),
            unassigned=count_unassigned(seen, pair),
            source_records_total=source_total,
            replicated_records_total=sum(map(_replicated_total, trackers)),
            lost_records_total=sum(loss.saved.total for loss in losses),
            pending_lost_records=sum(loss.pending for loss in losses),
            truncations_total=sum(map(_truncations, trackers)),
            source_recreations_total=self._source_epochs.recreations,
            target_recreations_total=self._target_epochs.recreations,
            target_moved_at=moved_at,
            backlog_since=backlog_since,
            at_rest=bool(partitions)
            and all(rests(each, self._policy) for each in partitions)
            and not any(loss.awaits_confirmation for loss in losses),
        )

    def _observe_source_id(self, topic_ids: Mapping[str, str], source: str) -> None:
        if self._source_epochs.observe_id(topic_ids.get(source)):
            for tracker in self._partitions:
                tracker.source_recreated()
        elif topic_ids is not self._topic_ids:
            for tracker in self._partitions:
                tracker.confirm_log()
        self._topic_ids = topic_ids

    def _observe_copy(
        self, seen: Observation, target: str, source_total: int, grace: float
    ) -> tuple[float | None, float | None]:
        """When the copy last grew, and since when it has not followed the topic."""
        if self._copy_movement is None:
            self._copy_movement = CopyMovement(grace)
        self._copy_movement.observe(seen, target, source_total)
        return self._copy_movement.target_moved_at, self._copy_movement.backlog_since

    def _judge_partitions(
        self,
        seen: Observation,
        pair: TopicPair,
        rules: FlowRules,
        count: int,
        flow_replicated_at: float | None,
    ) -> tuple[PartitionState, ...]:
        known_id = self._source_epochs.topic_id
        # A topic that was deleted, and is listed again, may be another one.
        is_identified = known_id is None or pair.source in seen.source.topic_ids
        is_read = seen.source_readable and is_identified
        source = (seen.source_offsets or _UNREAD) if is_read else _UNREAD
        target = (seen.target_offsets or _UNREAD) if seen.target_readable else _UNREAD
        internals, saved = seen.internals, seen.internals.saved.losses.get(pair.source)
        policy, rules = self._retention(seen, pair), rules.of_topic(pair)
        starts_read = source.starts_read_at > self._starts_read_at
        self._starts_read_at = max(self._starts_read_at, source.starts_read_at)
        on_source = seen.plan.partitions(pair.source, count)
        on_target = seen.plan.partitions(pair.target, count)
        readings = map(  # columns, in the order of the fields
            PartitionReading,
            map(source.ends.get, on_source),
            map(source.starts.get, on_source),
            _known(source.stable_ends, on_source),
            map(target.ends.get, on_target),
            map(target.starts.get, on_target),
            map(internals.committed.get, on_source),
            map(internals.syncs.get, on_source),
            _known(seen.probes, on_source),
            repeat(seen.target_readable),
            repeat(starts_read),
            repeat(flow_replicated_at),
            map(internals.task_commits, on_source) if rules.may_drop else repeat(None),
        )
        if saved is not None:
            self._read_saved(saved, pair.source, source.ends)
        self._add_partitions(count)
        states = []
        for tracker, reading in zip(self._partitions, readings, strict=False):
            end = reading.source_end
            if end is not None:
                tracker.observe_source_end(end, source.requested_at, source.answered_at)
            states.append(tracker.judge(seen.at, reading, rules, policy))
        return tuple(states)

    def _add_partitions(self, count: int) -> None:
        self._partitions += map(PartitionTracker, range(len(self._partitions), count))

    def _read_saved(
        self, saved: TopicLosses, source: str, ends: Mapping[TopicPartition, int]
    ) -> None:
        """Take over saved losses, also of partitions that cannot be read or no longer exist.

        The published total must not go back, and the next record must contain them.
        """
        known_id = self._source_epochs.topic_id
        same_topic = None in (saved.topic_id, known_id) or saved.topic_id == known_id
        self._add_partitions(max(saved.partitions, default=-1) + 1)
        for number, loss in saved.partitions.items():
            end = ends.get(TopicPartition(source, number))
            same_log = None if end is None else loss.judged_to <= end
            self._partitions[number].loss.read_saved(loss, same_log=same_topic and same_log)

    def _retention(self, seen: Observation, pair: TopicPair) -> RetentionPolicy | None:
        config = seen.source.retention_configs.get(pair.source)
        if config is not self._policy_of:
            self._policy_of = config
            self._policy = None if config is None else RetentionPolicy.from_topic_config(config)
        return self._policy


def _known(
    values: Mapping[TopicPartition, _Value], partitions: Sequence[TopicPartition]
) -> Iterable[_Value | None]:
    return map(values.get, partitions) if values else repeat(None)


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
