"""Consumer groups of the source, as a failover to the target would find them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.offsets import Head, Untranslated
from mm2slo_core.readiness import (
    GroupEvidence,
    LogRange,
    PartitionEvidence,
    ReadinessBudget,
    SeenCheckpoint,
    judge_group,
)
from mm2slo_core.slices import CheckpointSample
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.model import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_exporter.observation import Commit, Observation
    from mm2slo_exporter.state.model import PartitionState, TopicState


@dataclass(frozen=True, slots=True)
class FlowHealth:
    """What of the flow decides about each of its groups."""

    alive: bool
    tasks_running: bool | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A source partition that is replicated, and its copy."""

    topic: TopicState
    state: PartitionState
    log: LogRange | None
    """What the copy held when the target last answered; None without a copy."""

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic.pair.target, self.state.partition)

    @property
    def head(self) -> Head | None:
        if self.state.next_offset is None or self.state.target_end is None:
            return None
        return Head(self.state.next_offset, self.state.target_end)


def judge_groups(
    seen: Observation, topics: Iterable[TopicState], health: FlowHealth, budget: ReadinessBudget
) -> tuple[GroupState, ...]:
    """Judge each group that committed offsets on a replicated partition, in the order of names."""
    places = {
        TopicPartition(topic.pair.source, state.partition): _Place(
            topic, state, _log(seen, TopicPartition(topic.pair.target, state.partition))
        )
        for topic in topics
        for state in topic.partitions
    }
    judged = []
    for group, commits in sorted(seen.source.group_offsets.items()):
        evidence = tuple(
            _evidence(seen, group, here, commit, places[here])
            for here, commit in sorted(commits.items())
            if here in places
        )
        if evidence:
            judged.append(_judge(seen, group, evidence, health, budget))
    return tuple(judged)


def checkpoint_samples(
    seen: Observation, topics: Iterable[TopicState]
) -> Mapping[str, Mapping[object, CheckpointSample]] | None:
    """Commit and checkpoint of each group and partition; None while either cannot be read."""
    if not (seen.source_readable and seen.target_readable):
        return None
    copies = {topic.pair.source: topic.pair.target for topic in topics}
    samples: dict[str, dict[object, CheckpointSample]] = {}
    for group, commits in seen.source.group_offsets.items():
        known = seen.internals.checkpoints.get(group, {})
        found: dict[object, CheckpointSample] = {}
        for here, commit in commits.items():
            if here.topic in copies:
                mark = known.get(TopicPartition(copies[here.topic], here.partition))
                found[here] = CheckpointSample(commit, None if mark is None else mark.upstream)
        if found:
            samples[group] = found
    return samples


def _evidence(
    seen: Observation, group: str, here: TopicPartition, commit: int, place: _Place
) -> PartitionEvidence:
    checkpoint = seen.internals.checkpoints.get(group, {}).get(place.target)
    return PartitionEvidence(
        source=here,
        commit=_newest_commit(seen, commit, checkpoint),
        checkpoint=None if checkpoint is None else SeenCheckpoint(*checkpoint),
        target_log=place.log,
        target_topic_exists=not place.topic.missing_on_target,
        source_end=place.state.source_end,
        offset_map=seen.internals.offset_map(here),
        head=place.head,
        untranslated=_untranslated(seen, here, commit) if checkpoint is None else None,
        target_commit=seen.target.group_offsets.get(group, {}).get(place.target),
    )


def _newest_commit(seen: Observation, commit: int, checkpoint: Commit | None) -> int:
    """The commit of our own reading, or the checkpoint's where MirrorMaker 2 looked after us.

    Groups are read every few seconds and checkpoints as they come: without this a moving group
    would seem to be rewound behind its checkpoint. A group that was rewound is seen as such at
    the next reading.
    """
    read_at = seen.source.groups_read_at
    if checkpoint is None or read_at is None or checkpoint.at < read_at:
        return commit
    return max(commit, checkpoint.upstream)


def _log(seen: Observation, copy: TopicPartition) -> LogRange | None:
    read = seen.target_offsets
    if read is None or copy not in read.ends or copy not in read.starts:
        return None
    return LogRange(read.starts[copy], read.ends[copy])


def _untranslated(seen: Observation, here: TopicPartition, commit: int) -> Untranslated | None:
    """Why there is no checkpoint; None where MirrorMaker 2 could write one and has not yet."""
    offset_map = seen.internals.offset_map(here)
    if offset_map is None:
        return Untranslated.NO_SYNC
    return None if offset_map.reaches(commit) else Untranslated.BEHIND_OLDEST_SYNC


def _judge(
    seen: Observation,
    group: str,
    evidence: tuple[PartitionEvidence, ...],
    health: FlowHealth,
    budget: ReadinessBudget,
) -> GroupState:
    readiness = judge_group(
        GroupEvidence(
            group=group,
            partitions=evidence,
            flow_alive=health.alive,
            tasks_running=health.tasks_running,
            source_readable=seen.source_readable,
            syncs_group_offsets=seen.internals.sync_group_offsets,
            target_group_active=group in seen.target.active_groups,
        ),
        budget,
        seen.at,
    )
    lag_by_topic: defaultdict[str, int] = defaultdict(int)
    for partition in readiness.partitions:
        if partition.checkpoint_lag is not None:
            lag_by_topic[partition.source.topic] += partition.checkpoint_lag
    newest = max((e.checkpoint.at for e in evidence if e.checkpoint is not None), default=None)
    return GroupState(group, readiness, newest, dict(lag_by_topic))
