"""What the readiness of a consumer group depends on, from an observation."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.flow_offsets import Head, Untranslated
from mm2slo_core.group_evidence import LogRange, NewestCheckpoint, PartitionEvidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.group_evidence import NewestCheckpoint
    from mm2slo_core.topology import TopicPartition
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.flow_report import PartitionState, TopicState


class TargetCommits(NamedTuple):
    """Commits of a group on the target: those to judge by, and a newer reading if there is one.

    A commit on the target that was read after those of the source may be the copy of a newer commit
    there: the group would appear to skip records. It waits for the next reading of the source.
    """

    used: Mapping[TopicPartition, int]
    newest: Mapping[TopicPartition, int]
    newest_at: float

    @classmethod
    def read(cls, seen: Observation, group: str, before: TargetCommits | None) -> TargetCommits:
        """The commits of *group* after an observation."""
        newest = seen.target.group_offsets.get(group, {})
        at = seen.target.groups_read_at.get(group, -inf)
        source_at = seen.source.groups_read_at.get(group, inf)
        if not seen.source_readable or group in seen.source.unreadable_groups or before is None:
            return cls(newest, newest, at)
        if at <= source_at:
            return cls(newest, newest, at)
        used = before.newest if before.newest_at <= source_at else before.used
        return cls(used, newest, at)


class GroupInputs(NamedTuple):
    """All that the state of a group depends on, except the time."""

    commits: Mapping[TopicPartition, int]
    names: tuple[str, ...]
    """The topics of `commits`."""
    checkpoints: Mapping[TopicPartition, NewestCheckpoint]
    target_commits: Mapping[TopicPartition, int]
    topics: tuple[TopicState | None, ...]
    """Their states; None for one that is not replicated."""
    last_read: tuple[TopicState | None, ...]
    """The same topics in the last round in which the source was readable."""
    commits_readable: bool
    target_commits_readable: bool
    ends_are_newer: bool
    """Whether the source's end offsets were read after the group's commits."""
    syncs_group_offsets: bool
    active_on_target: bool
    is_carried: bool
    translation_restarted_at: float | None


def collect_inputs(
    seen: Observation,
    group: str,
    commits: Mapping[TopicPartition, int],
    by_source: Mapping[str, TopicState],
    last_read: Mapping[str, TopicState],
    *,
    target_commits: Mapping[TopicPartition, int],
    before: GroupInputs | None = None,
) -> GroupInputs:
    """The inputs of *group*; *last_read* are the topics when the source was last readable."""
    ends = seen.source_offsets
    if before is not None and before.commits is commits:
        names = before.names
    else:
        names = tuple(dict.fromkeys(partition.topic for partition in commits))
    return GroupInputs(
        commits,
        names,
        seen.internals.checkpoints.get(group, {}),
        target_commits,
        tuple(map(by_source.get, names)),
        tuple(map(last_read.get, names)),
        not (seen.source_readable and group in seen.source.unreadable_groups),
        not (seen.target_readable and group in seen.target.unreadable_groups),
        ends is not None and ends.requested_at >= seen.source.groups_read_at.get(group, inf),
        seen.internals.connectors.syncs_group_offsets,
        seen.target.is_active(group),
        group not in seen.source.uncarried_groups,
        seen.internals.translation_restarted_at,
    )


def gather_evidence(
    seen: Observation, group: str, inputs: GroupInputs
) -> tuple[list[PartitionEvidence], list[PartitionState | None]]:
    """The evidence of each replicated partition on which *group* has committed offsets, in order.

    And its state when the source was last readable.
    """
    topics = {topic.pair.source: topic for topic in inputs.topics if topic is not None}
    last_read = {topic.pair.source: topic for topic in inputs.last_read if topic is not None}
    newer_from = seen.source.groups_read_at.get(group, inf)
    if group in seen.source.unreadable_groups and newer_from < inf:
        newer_from = -inf
    evidence: list[PartitionEvidence] = []
    states: list[PartitionState | None] = []
    for partition in sorted(inputs.commits):
        name, number = partition
        topic, before = topics.get(name), last_read.get(name)
        if topic is None or number >= len(topic.partitions):
            continue
        state = before.partitions[number] if before and number < len(before.partitions) else None
        states.append(state)
        evidence.append(_evidence(seen, inputs, partition, topic, state, newer_from=newer_from))
    return evidence, states


def _evidence(
    seen: Observation,
    inputs: GroupInputs,
    partition: TopicPartition,
    topic: TopicState,
    state: PartitionState | None,
    *,
    newer_from: float,
) -> PartitionEvidence:
    """The evidence from *topic* as it is, and from *state*, of the last reading of the source.

    Groups are read every few seconds, checkpoints continuously: without those that were written
    from the time *newer_from* on, an active group would appear to be rewound behind its checkpoint.
    A group that was really rewound is detected at the next read.
    """
    commit = inputs.commits[partition]
    copy = seen.plan.partitions(topic.pair.target, len(topic.partitions))[partition.partition]
    checkpoint = inputs.checkpoints.get(copy)
    untranslated, beyond_end = None, 0
    if inputs.ends_are_newer and state is not None and state.source_end is not None:
        beyond_end = max(commit - state.source_end, 0)
    if checkpoint is None:
        untranslated = _untranslated(seen, partition, commit)
    elif checkpoint.at >= newer_from and checkpoint.upstream > commit:
        commit = checkpoint.upstream
    head = None
    if state and state.next_offset is not None and state.target_end is not None:
        head = Head(state.next_offset, state.target_end)
    return PartitionEvidence(
        partition,
        commit,
        checkpoint,
        _log(seen, copy),
        not topic.missing_on_target,
        None if state is None else state.source_end,
        seen.internals.offset_map(partition),
        head,
        untranslated,
        inputs.target_commits.get(copy),
        beyond_end,
    )


def _log(seen: Observation, copy: TopicPartition) -> LogRange | None:
    read = seen.target_offsets
    if read is None:
        return None
    start, end = read.starts.get(copy), read.ends.get(copy)
    return None if start is None or end is None else LogRange(start, end)


def _untranslated(seen: Observation, partition: TopicPartition, commit: int) -> Untranslated | None:
    """Why a checkpoint is missing; None where MirrorMaker 2 could write one and has not yet."""
    offset_map = seen.internals.offset_map(partition)
    if offset_map is None:
        return Untranslated.NO_SYNC
    return None if offset_map.reaches(commit) else Untranslated.BEHIND_OLDEST_SYNC
