"""Failover readiness of the source's consumer groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.flow_offsets import Head, Untranslated
from mm2slo_core.group_readiness import (
    GroupEvidence,
    LogRange,
    PartitionEvidence,
    ReadinessLimits,
    SeenCheckpoint,
    evaluate_group,
)
from mm2slo_core.time_slices import CheckpointSample
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_report import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_exporter.observation import NewestCheckpoint, Observation
    from mm2slo_exporter.state.flow_report import PartitionState, TopicState


@dataclass(frozen=True, slots=True)
class FlowHealth:
    """State of the flow that affects all of its groups."""

    alive: bool
    tasks_running: bool | None


@dataclass(frozen=True, slots=True)
class _ReplicatedPartition:
    """A replicated source partition and its copy."""

    topic: TopicState
    state: PartitionState
    log: LogRange | None
    """Offsets of the copy when the target last answered; None without a copy."""

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic.pair.target, self.state.partition)

    @property
    def head(self) -> Head | None:
        if self.state.next_offset is None or self.state.target_end is None:
            return None
        return Head(self.state.next_offset, self.state.target_end)


def judge_groups(
    seen: Observation, topics: Iterable[TopicState], health: FlowHealth, budget: ReadinessLimits
) -> tuple[GroupState, ...]:
    """Judge each group that committed offsets on a replicated partition, ordered by name."""
    replicated = {
        TopicPartition(topic.pair.source, state.partition): _ReplicatedPartition(
            topic, state, _log(seen, TopicPartition(topic.pair.target, state.partition))
        )
        for topic in topics
        for state in topic.partitions
    }
    judged = []
    for group, commits in sorted(seen.source.group_offsets.items()):
        evidence = tuple(
            _evidence(seen, group, partition, commit, replicated[partition])
            for partition, commit in sorted(commits.items())
            if partition in replicated
        )
        if evidence:
            judged.append(_judge(seen, group, evidence, health, budget))
    return tuple(judged)


def checkpoint_samples(
    seen: Observation, topics: Iterable[TopicState]
) -> Mapping[str, Mapping[object, CheckpointSample]] | None:
    """Commits and checkpoints by group and partition; None while a cluster is unreadable."""
    if not (seen.source_readable and seen.target_readable):
        return None
    copies = {topic.pair.source: topic.pair.target for topic in topics}
    samples: dict[str, dict[object, CheckpointSample]] = {}
    for group, commits in seen.source.group_offsets.items():
        known = seen.internals.checkpoints.get(group, {})
        found: dict[object, CheckpointSample] = {}
        for partition, commit in commits.items():
            if partition.topic in copies:
                copy = TopicPartition(copies[partition.topic], partition.partition)
                checkpoint = known.get(copy)
                found[partition] = CheckpointSample(
                    commit, None if checkpoint is None else checkpoint.upstream
                )
        if found:
            samples[group] = found
    return samples


def _evidence(
    seen: Observation,
    group: str,
    partition: TopicPartition,
    commit: int,
    replicated: _ReplicatedPartition,
) -> PartitionEvidence:
    checkpoint = seen.internals.checkpoints.get(group, {}).get(replicated.target)
    return PartitionEvidence(
        source=partition,
        commit=_newest_commit(seen, group, commit, checkpoint),
        checkpoint=None if checkpoint is None else SeenCheckpoint(*checkpoint),
        target_log=replicated.log,
        target_topic_exists=not replicated.topic.missing_on_target,
        source_end=replicated.state.source_end,
        offset_map=seen.internals.offset_map(partition),
        head=replicated.head,
        untranslated=_untranslated(seen, partition, commit) if checkpoint is None else None,
        target_commit=seen.target.group_offsets.get(group, {}).get(replicated.target),
    )


def _newest_commit(
    seen: Observation, group: str, commit: int, checkpoint: NewestCheckpoint | None
) -> int:
    """The committed offset, or the checkpoint's upstream offset if the checkpoint is newer.

    Groups are read every few seconds, checkpoints continuously: without this, an active group
    would appear to be rewound behind its checkpoint. A group that was really rewound is detected
    at the next read.
    """
    read_at = seen.source.groups_read_at
    if checkpoint is None or read_at is None:
        return commit
    if checkpoint.at < read_at and group not in seen.source.unreadable_groups:
        return commit
    return max(commit, checkpoint.upstream)


def _log(seen: Observation, copy: TopicPartition) -> LogRange | None:
    read = seen.target_offsets
    if read is None or copy not in read.ends or copy not in read.starts:
        return None
    return LogRange(read.starts[copy], read.ends[copy])


def _untranslated(seen: Observation, partition: TopicPartition, commit: int) -> Untranslated | None:
    """Why a checkpoint is missing; None where MirrorMaker 2 could write one and has not yet."""
    offset_map = seen.internals.offset_map(partition)
    if offset_map is None:
        return Untranslated.NO_SYNC
    return None if offset_map.reaches(commit) else Untranslated.BEHIND_OLDEST_SYNC


def _judge(
    seen: Observation,
    group: str,
    evidence: tuple[PartitionEvidence, ...],
    health: FlowHealth,
    budget: ReadinessLimits,
) -> GroupState:
    readiness = evaluate_group(
        GroupEvidence(
            group=group,
            partitions=evidence,
            flow_alive=health.alive,
            tasks_running=health.tasks_running,
            source_readable=seen.source_readable and group not in seen.source.unreadable_groups,
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
