"""Tracks the topics of a flow over time; judges only those of which something has changed.

The state of a topic without a backlog of which nothing new was read is that of the round before.
Counters are summed by their growth: a sum over the topics that exist would go back when one is
deleted, which Prometheus takes for a restart of the counter. Losses are those in the state topic,
which has deleted topics as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from operator import add, attrgetter, sub
from typing import NamedTuple

from mm2slo_core.records.timeline_record import WatermarkRecord
from mm2slo_core.state_record import TopicLosses
from mm2slo_core.topic_selection import SyncedSettings
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.state.flow_report import FlowTotals, PartitionState, TopicState
from mm2slo_exporter.state.partition_reading import FlowRules
from mm2slo_exporter.state.topic_tracker import TopicTracker

_DELETED_TOPIC_SECONDS = 3600.0
"""A topic that reappears within this time after its deletion counts as re-created."""


class FlowTopics:
    """The topics of one flow, and the sums of their counters."""

    def __init__(self, previous: FlowTopics | None = None) -> None:
        """Continues from the state of *previous*, before a reload."""
        self.totals: TotalsTracker = previous.totals if previous else TotalsTracker()
        self.unchanged: AbstractSet[str] = frozenset()
        """Source topics whose state is that of the round before."""
        self._trackers: dict[str, TopicTracker] = previous._trackers if previous else {}
        self._absent_since: dict[str, float] = previous._absent_since if previous else {}
        self._changes = ChangedTopics()

    def add_history(self, history: Mapping[str, Sequence[WatermarkRecord]]) -> None:
        """Add polls of an earlier process by source topic, newest first."""
        for topic, records in history.items():
            if (tracker := self._trackers.get(topic)) is not None:
                tracker.add_history(records)

    def lacking_arrivals(self, states: Iterable[TopicState]) -> set[str]:
        """Source topics whose unreplicated records may have arrived before the polls added."""
        return {
            each.pair.source
            for each in states
            if not each.at_rest and self._trackers[each.pair.source].lacks_arrivals(each)
        }

    def unsaved_losses(self) -> dict[str, TopicLosses]:
        """The losses of the topics whose state record is behind, by source topic."""
        return {
            name: tracker.losses()
            for name, tracker in self._trackers.items()
            if tracker.needs_saving
        }

    def judge(
        self,
        seen: Observation,
        rules: FlowRules,
        settings: SyncedSettings,
        replicated_at: float | None,
    ) -> tuple[TopicState, ...]:
        """Judge one round. *replicated_at*: when the flow last replicated anything."""
        if seen.source_readable:
            self._forget_deleted({pair.source for pair in seen.plan.pairs}, seen.at)
        changed = self._changes.since_last(seen)
        topics, unchanged = [], set()
        for pair in seen.plan.pairs:
            tracker, state = self._trackers.get(pair.source), None
            if tracker is None:
                tracker = self._trackers[pair.source] = TopicTracker()
            if changed is not None and pair.source not in changed:
                state = tracker.repeat(seen, rules)
            if state is None:
                state = tracker.judge(seen, pair, rules, settings, replicated_at)
            else:
                unchanged.add(pair.source)
            topics.append(state)
        self._changes.remember(seen)
        self.unchanged = unchanged
        return tuple(topics)

    def judge_all_next(self) -> None:
        """Judge all topics in the next round: any may differ from the last one."""
        self._changes.forget()
        self.unchanged = frozenset()

    def restart(self) -> None:
        """Track all topics from the start; their totals continue."""
        self._trackers, self._absent_since = {}, {}
        self.totals.forget_topics()

    def _forget_deleted(self, wanted: set[str], at: float) -> None:
        """Drop trackers of topics that were deleted an hour ago."""
        for name in self._absent_since.keys() & wanted:
            del self._absent_since[name]
        for name in self._trackers.keys() - wanted:
            if at - self._absent_since.setdefault(name, at) > _DELETED_TOPIC_SECONDS:
                del self._trackers[name], self._absent_since[name]
                self.totals.forget(name)


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
        of_source = map(_differing, _source_values(before), _source_values(seen))
        of_target = map(_differing, _target_values(before), _target_values(seen))
        copies = set().union(*of_target) & self._sources.keys()
        old, new = before.internals.saved.losses, seen.internals.saved.losses
        saved = () if _is_same(old, new) else old.keys() | new.keys()
        losses = {name for name in saved if old.get(name) != new.get(name)}
        return losses.union(*of_source, (self._sources[copy] for copy in copies))


def _comparable(before: Observation, seen: Observation) -> bool:
    """Whether only offsets, internal topics and probes may differ, and all of them were read."""
    both = (before, seen)
    is_read = all(each.source_readable and each.target_readable for each in both)
    return is_read and before.plan is seen.plan and all(map(_is_same, *map(_conditions, both)))


def _conditions(seen: Observation) -> Iterator[object]:
    yield seen.internals.assigned
    for view in (seen.source, seen.target):
        yield from (view.topics, view.topic_ids, view.topic_configs, view.retention_configs)


def _source_values(seen: Observation) -> tuple[Mapping[TopicPartition, object], ...]:
    read, view = seen.source_offsets or _UNREAD, seen.internals
    return read.ends, read.starts, read.stable_ends, view.committed, view.syncs, seen.probes


def _target_values(seen: Observation) -> tuple[Mapping[TopicPartition, object], ...]:
    read = seen.target_offsets or _UNREAD
    return read.ends, read.starts


def _is_same(old: object, new: object) -> bool:
    return old is new or old == new


def _differing(
    old: Mapping[TopicPartition, object], new: Mapping[TopicPartition, object]
) -> set[str]:
    """Topics of keys that are in only one of the mappings, or have another value."""
    if _is_same(old, new):
        return set()
    changed = {key.topic for key, value in new.items() if old.get(key) != value}
    return changed | {key.topic for key in old if key not in new}


class LastKnown(NamedTuple):
    """The last state of a partition with a known lag, and when the source was read for it."""

    state: PartitionState
    read_at: float

    def at(self, at: float, replicated_at: float | None) -> PartitionState:
        """The state at the time *at*, with the stall that it had.

        Without a stall if the flow has replicated anything since: it may have ended.
        """
        since = self.state.backlog_since
        if since is not None:
            is_outdated = replicated_at is not None and replicated_at > self.read_at
            since = None if is_outdated else since + at - self.read_at
        return self.state._replace(backlog_since=since)


class UnreadPartitions:
    """Partitions whose lag is unknown and was known before, as without a leader.

    When a cluster fails broker by broker, the others alone would show that nothing is unreplicated.
    """

    def __init__(self) -> None:
        self._topics: Sequence[TopicState] = ()
        self._read_at = 0.0
        self._unread: Mapping[TopicPartition, LastKnown] = {}

    def all_known(self, topics: Sequence[TopicState], read_at: float) -> None:
        """Add a round in which each lag is known."""
        self._topics, self._read_at, self._unread = topics, read_at, {}

    def observe(self, topics: Sequence[TopicState], read_at: float) -> Collection[LastKnown]:
        """Add a round in which the source was readable."""
        self._unread = dict(self._find(topics))
        self._topics, self._read_at = topics, read_at
        return self._unread.values()

    def _find(self, topics: Iterable[TopicState]) -> Iterator[tuple[TopicPartition, LastKnown]]:
        states_before = {topic.pair.source: topic.partitions for topic in self._topics}
        for topic in topics:
            name = topic.pair.source
            for now, before in zip(topic.partitions, states_before.get(name, ()), strict=False):
                if now.lag_records is not None:
                    continue
                partition = TopicPartition(name, now.partition)
                if before.lag_records is not None:
                    yield partition, LastKnown(before, self._read_at)
                elif known := self._unread.get(partition):
                    yield partition, known


_NAMES = tuple(each.name for each in fields(FlowTotals) if each.name != "lost_records_total")
_counters: Callable[[TopicState], tuple[int, ...]] = attrgetter(*_NAMES)


class TotalsTracker:
    """The totals of one flow over time."""

    def __init__(self) -> None:
        self._totals: tuple[int, ...] = (0,) * len(_NAMES)
        self._counted: dict[str, tuple[int, ...]] = {}
        self._lost = 0

    def observe(self, topics: Iterable[TopicState], lost: int) -> FlowTotals:
        """Add what the counters of *topics* have grown by; *lost* is the total in the state topic.

        Total losses do not go back if that topic is deleted.
        """
        # A counter that goes back is a restart to Prometheus: increase() would then count what is
        # left of it, all losses that are still saved, as new ones.
        self._lost = max(self._lost, lost)
        for topic in topics:
            now, name = _counters(topic), topic.pair.source
            before = self._counted.get(name, (0,) * len(_NAMES))
            if now != before:
                self._totals = tuple(map(add, self._totals, map(sub, now, before)))
                self._counted[name] = now
        grown = dict(zip(_NAMES, self._totals, strict=True))
        return FlowTotals(**grown, lost_records_total=self._lost)

    def forget_topics(self) -> None:
        """Count all topics from 0: their trackers were dropped."""
        self._counted.clear()

    def forget(self, topic: str) -> None:
        """Count a topic with this name from 0: its tracker was dropped."""
        self._counted.pop(topic, None)
