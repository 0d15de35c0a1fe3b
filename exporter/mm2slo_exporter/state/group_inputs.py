"""What the readiness of a consumer group depends on, from an observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.flow_offsets import Head, Untranslated
from mm2slo_core.group_evidence import LogRange, PartitionEvidence, SeenCheckpoint
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_exporter.observation import NewestCheckpoint, Observation
    from mm2slo_exporter.state.flow_report import PartitionState, TopicState


class GroupInputs(NamedTuple):
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

    def last_states(self, partitions: Iterable[TopicPartition]) -> list[PartitionState | None]:
        """The states of *partitions* when the source was last readable."""
        topics = {topic.pair.source: topic for topic in self.last_read if topic is not None}
        return [
            topics[topic].partitions[number]
            if topic in topics and number < len(topics[topic].partitions)
            else None
            for topic, number in partitions
        ]


def collect_inputs(
    seen: Observation,
    group: str,
    commits: Mapping[TopicPartition, int],
    by_source: Mapping[str, TopicState],
    last_read: Mapping[str, TopicState],
) -> GroupInputs:
    """The inputs of *group*; *last_read* are the topics when the source was last readable."""
    names = tuple(dict.fromkeys(partition.topic for partition in commits))
    return GroupInputs(
        commits,
        seen.internals.checkpoints.get(group, {}),
        seen.target.group_offsets.get(group, {}),
        tuple(map(by_source.get, names)),
        tuple(map(last_read.get, names)),
        not (seen.source_readable and group in seen.source.unreadable_groups),
        seen.internals.connectors.syncs_group_offsets,
        seen.target.is_active(group),
        seen.internals.translation_restarted_at,
    )


def gather_evidence(
    seen: Observation, group: str, inputs: GroupInputs
) -> tuple[PartitionEvidence, ...]:
    """The evidence of each replicated partition on which *group* has committed offsets."""
    topics = {topic.pair.source: topic for topic in inputs.topics if topic is not None}
    partitions = [
        partition
        for partition in sorted(inputs.commits)
        if partition.topic in topics
        and partition.partition < len(topics[partition.topic].partitions)
    ]
    return tuple(
        _evidence(seen, group, inputs, partition, topics[partition.topic], state=state)
        for partition, state in zip(partitions, inputs.last_states(partitions), strict=True)
    )


def _evidence(
    seen: Observation,
    group: str,
    inputs: GroupInputs,
    partition: TopicPartition,
    topic: TopicState,
    *,
    state: PartitionState | None,
) -> PartitionEvidence:
    """The evidence from *topic* as it is, and from *state*, of the last reading of the source."""
    commit = inputs.commits[partition]
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
