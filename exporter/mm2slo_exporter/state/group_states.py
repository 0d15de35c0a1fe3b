"""Failover readiness of the source's consumer groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

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
from mm2slo_exporter.state.recovery_point import NOTHING_KNOWN, sum_unreplicated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_exporter.observation import NewestCheckpoint, Observation
    from mm2slo_exporter.state.flow_report import PartitionState, TopicState


class _Inputs(NamedTuple):
    """All that the state of a group depends on, except the time."""

    commits: Mapping[TopicPartition, int]
    checkpoints: Mapping[TopicPartition, NewestCheckpoint]
    target_commits: Mapping[TopicPartition, int]
    topics: tuple[TopicState | None, ...]
    """States of the topics of `commits`; None for one that is not replicated."""
    last_read: tuple[TopicState | None, ...]
    """The same topics in the last round in which the source was readable."""
    commits_readable: bool
    syncs_group_offsets: bool
    active_on_target: bool
    translation_restarted_at: float | None


class _Judged(NamedTuple):
    inputs: _Inputs
    state: GroupState | None
    """None for a group without commits on a replicated partition."""
    holds: bool
    """Whether the state does not depend on the time of the round."""


class GroupJudge:
    """Judges the groups of one flow; those of which nothing has changed only once.

    While the source is unreadable, by the target now and by the source as it was last read.
    """

    def __init__(self, limits: ReadinessLimits) -> None:
        self.limits = limits
        self._known: dict[str, _Judged] = {}
        self._last_read: dict[str, TopicState] = {}
        """The topics of the last round in which the source was readable."""

    def judge(self, seen: Observation, topics: Iterable[TopicState]) -> tuple[GroupState, ...]:
        """Judge each group that committed offsets on a replicated partition, ordered by name."""
        by_source = {topic.pair.source: topic for topic in topics}
        if seen.source_readable:
            self._last_read = by_source
        judged: dict[str, _Judged] = {}
        for group, commits in sorted(seen.source.group_offsets.items()):
            known = self._known.get(group)
            inputs = _inputs(seen, group, commits, by_source, self._last_read)
            if known is None or not known.holds or known.inputs != inputs:
                known = _judge(seen, group, inputs, self.limits)
            judged[group] = _with_commits_at(known, seen.source.groups_read_at.get(group))
        self._known = judged
        return tuple(each.state for each in judged.values() if each.state is not None)

    def forget(self) -> None:
        """Judge all groups again: the offset syncs may have been read again."""
        self._known.clear()


def _with_commits_at(judged: _Judged, at: float | None) -> _Judged:
    if judged.state is None or judged.state.commits_at == at:
        return judged
    return judged._replace(state=replace(judged.state, commits_at=at))


def _inputs(
    seen: Observation,
    group: str,
    commits: Mapping[TopicPartition, int],
    by_source: Mapping[str, TopicState],
    last_read: Mapping[str, TopicState],
) -> _Inputs:
    names = tuple(dict.fromkeys(partition.topic for partition in commits))
    return _Inputs(
        commits,
        seen.internals.checkpoints.get(group, {}),
        seen.target.group_offsets.get(group, {}),
        tuple(map(by_source.get, names)),
        tuple(map(last_read.get, names)),
        not (seen.source_readable and group in seen.source.unreadable_groups),
        seen.internals.sync_group_offsets,
        seen.target.is_active(group),
        seen.internals.translation_restarted_at,
    )


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
    inputs: _Inputs,
    partition: TopicPartition,
    topic: TopicState,
    *,
    last_read: TopicState | None,
) -> PartitionEvidence:
    """The evidence from *topic* as it is, and from the source as it was last read."""
    state, commit = _partition_of(last_read, partition.partition), inputs.commits[partition]
    copy = TopicPartition(topic.pair.target, partition.partition)
    checkpoint = inputs.checkpoints.get(copy)
    head = None
    if state and state.next_offset is not None and state.target_end is not None:
        head = Head(state.next_offset, state.target_end)
    return PartitionEvidence(
        source=partition,
        commit=_newest_commit(seen, group, commit, checkpoint),
        checkpoint=None if checkpoint is None else SeenCheckpoint(*checkpoint),
        target_log=_log(seen, copy),
        target_topic_exists=not topic.missing_on_target,
        source_end=None if state is None else state.source_end,
        offset_map=seen.internals.offset_map(partition),
        head=head,
        untranslated=_untranslated(seen, partition, commit) if checkpoint is None else None,
        target_commit=inputs.target_commits.get(copy),
    )


def _partition_of(topic: TopicState | None, number: int) -> PartitionState | None:
    if topic is None or number >= len(topic.partitions):
        return None
    return topic.partitions[number]


def _newest_commit(
    seen: Observation, group: str, commit: int, checkpoint: NewestCheckpoint | None
) -> int:
    """The committed offset, or the checkpoint's upstream offset if the checkpoint is newer.

    Groups are read every few seconds, checkpoints continuously: without this, an active group
    would appear to be rewound behind its checkpoint. A group that was really rewound is detected
    at the next read.
    """
    read_at = seen.source.groups_read_at.get(group)
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


def _judge(seen: Observation, group: str, inputs: _Inputs, limits: ReadinessLimits) -> _Judged:
    topics = {topic.pair.source: topic for topic in inputs.topics if topic is not None}
    last_read = {topic.pair.source: topic for topic in inputs.last_read if topic is not None}
    evidence = tuple(
        _evidence(
            seen,
            group,
            inputs,
            partition,
            topics[partition.topic],
            last_read=last_read.get(partition.topic),
        )
        for partition in sorted(inputs.commits)
        if partition.topic in topics
        and partition.partition < len(topics[partition.topic].partitions)
    )
    if not evidence:
        return _Judged(inputs, None, holds=True)
    readiness = evaluate_group(
        GroupEvidence(
            group=group,
            partitions=evidence,
            commits_readable=inputs.commits_readable,
            syncs_group_offsets=inputs.syncs_group_offsets,
            target_group_active=inputs.active_on_target,
        ),
        limits,
        seen.at,
    )
    lag_by_topic: defaultdict[str, int] = defaultdict(int)
    for partition in readiness.partitions:
        if partition.checkpoint_lag is not None:
            lag_by_topic[partition.source.topic] += partition.checkpoint_lag
    written = [each.checkpoint.at for each in evidence if each.checkpoint is not None]
    newest = max(written, default=None)
    sources = (each.source for each in evidence)
    partitions = [_partition_of(last_read.get(p.topic), p.partition) for p in sources]
    state = GroupState(
        group,
        readiness,
        newest,
        dict(lag_by_topic),
        unreplicated=(
            NOTHING_KNOWN if None in partitions else sum_unreplicated(filter(None, partitions))
        ),
    )
    return _Judged(inputs, state, _holds(seen, group, newest, inputs, limits))


def _holds(
    seen: Observation, group: str, newest: float | None, inputs: _Inputs, limits: ReadinessLimits
) -> bool:
    """Whether later rounds judge the same: no checkpoint is newer than commits, or too fresh."""
    if newest is None:
        return True
    read_at = seen.source.groups_read_at.get(group)
    if group not in seen.source.unreadable_groups and (read_at is None or newest >= read_at):
        return False
    return not inputs.syncs_group_offsets or seen.at - newest > limits.group_sync_grace_period
