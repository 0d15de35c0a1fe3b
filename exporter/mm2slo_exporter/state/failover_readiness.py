"""Failover readiness of the source's consumer groups, and what was observed that it depends on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from operator import attrgetter
from typing import Final, NamedTuple

from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.indicators.group_readiness import (
    BlockReason,
    GroupEvidence,
    LogRange,
    NewestCheckpoint,
    PartitionEvidence,
    ReadinessLimits,
    evaluate_group,
    uncarried_without_commits,
)
from mm2slo_core.indicators.sli_counters import GroupOffsets
from mm2slo_core.offset_translation import Head, PositionQuality, Untranslated
from mm2slo_core.topic_filters import GroupFilter
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import Observation
from mm2slo_exporter.state.flow_report import (
    NO_UNJUDGED_GROUPS,
    GroupState,
    PartitionState,
    TopicState,
    UnjudgedGroups,
)
from mm2slo_exporter.state.group_lag import UNKNOWN_LAG, sum_lags

_EXACT: Final = frozenset({PositionQuality.LIVE, PositionQuality.FILTERED})
OWN_GROUPS: Final = ("mm2slo.leader.", "mm2slo.canary.")


class _Judged(NamedTuple):
    inputs: GroupInputs
    state: GroupState | None
    """None for a group without commits on a replicated partition."""
    holds: bool
    """Whether the state does not depend on the time of the round."""
    on_target: TargetCommits | None = None


class GroupJudge:
    """Judges the groups of one flow; those of which nothing has changed only once.

    While the source is unreadable, by the target now and by the source as it was last read.
    """

    def __init__(self, flow: FlowSettings) -> None:
        self.use(flow)
        self._known: dict[str, _Judged] = {}
        self._last_read: dict[str, TopicState] = {}
        """The topics of the last round in which the source was readable."""

    def use(self, flow: FlowSettings) -> None:
        """Judge the groups of *flow* by its limits; the source may have those of other flows."""
        self._limits = readiness_limits(flow)
        self._wants = GroupFilter(flow.groups, flow.groups_exclude).matches

    def judge(self, seen: Observation, topics: Iterable[TopicState]) -> tuple[GroupState, ...]:
        """Judge each group that committed offsets on a replicated partition, ordered by name.

        And those without commits that MirrorMaker 2 does not carry.
        """
        by_source = {topic.pair.source: topic for topic in topics}
        if seen.source_readable:
            self._last_read = by_source
        if not seen.target.groups_complete:
            return ()
        judged: dict[str, _Judged] = {}
        for group, commits in sorted(seen.source.group_offsets.items()):
            if not self._wants(group):
                continue
            known = self._known.get(group)
            before = None if known is None else known.inputs
            on_target = TargetCommits.read(seen, group, known.on_target if known else None)
            inputs = collect_inputs(
                seen,
                group,
                commits,
                by_source,
                self._last_read,
                target_commits=on_target.used,
                before=before,
            )
            if known is None or not known.holds or known.inputs != inputs:
                known = _judge(seen, group, inputs, self._limits)
            else:
                # Equal, but of this round: states of topics are kept, and compared by identity.
                known = known._replace(inputs=inputs)
            known = known._replace(on_target=on_target)
            judged[group] = _with_commits_at(known, seen.source.groups_read_at.get(group))
        self._known = judged
        found = [each.state for each in judged.values() if each.state is not None]
        uncarried = seen.source.uncarried_groups - seen.source.group_offsets.keys()
        others = [
            GroupState(group, uncarried_without_commits(group), None, {})
            for group in filter(self._wants, uncarried)
        ]
        return tuple(sorted((*found, *others), key=attrgetter("group")))

    def unjudged(self, seen: Observation, judged: Iterable[GroupState]) -> UnjudgedGroups:
        """The source's other groups; none until all were read once."""
        if not (seen.source.groups_complete and seen.target.groups_complete):
            return NO_UNJUDGED_GROUPS
        names = seen.source.group_states.keys() | seen.source.uncarried_groups
        names -= {each.group for each in judged}
        names = {group for group in names if not group.startswith(OWN_GROUPS)}
        excluded = [group for group in names if not self._wants(group)]
        return UnjudgedGroups(
            excluded=tuple(sorted(excluded)),
            without_commits=tuple(sorted(names.difference(excluded))),
            all_types=seen.source.knows_uncarried_groups,
        )

    def forget(self) -> None:
        """Judge all groups again: the offset syncs may have been read again."""
        self._known.clear()


def _with_commits_at(judged: _Judged, at: float | None) -> _Judged:
    if judged.state is None or judged.state.commits_at == at:
        return judged
    return judged._replace(state=replace(judged.state, commits_at=at))


def group_offsets(seen: Observation) -> Mapping[str, GroupOffsets] | None:
    """Commits and checkpoints by group that is carried; None while a cluster is unreadable."""
    if not (seen.source_readable and seen.target_readable):
        return None
    checkpoints = seen.internals.checkpoints
    return {
        group: GroupOffsets(commits, checkpoints.get(group, {}))
        for group, commits in seen.source.group_offsets.items()
        if group not in seen.source.uncarried_groups
    }


def _judge(seen: Observation, group: str, inputs: GroupInputs, limits: ReadinessLimits) -> _Judged:
    evidence, last_states = gather_evidence(seen, group, inputs)
    if not evidence:
        return _Judged(inputs, None, holds=True)
    readiness = evaluate_group(
        GroupEvidence(
            group=group,
            partitions=tuple(evidence),
            commits_readable=inputs.commits_readable,
            target_commits_readable=inputs.target_commits_readable,
            syncs_group_offsets=inputs.syncs_group_offsets,
            target_group_active=inputs.active_on_target,
            is_carried=inputs.is_carried,
        ),
        limits,
        seen.at,
    )
    lag_by_topic: defaultdict[str, int] = defaultdict(int)
    for partition in readiness.partitions:
        if partition.checkpoint_lag is not None:
            lag_by_topic[partition.source.topic] += partition.checkpoint_lag
    checkpoints = [each.checkpoint for each in evidence if each.checkpoint is not None]
    newest = max((each.at for each in checkpoints), default=None)
    known = [each for each in last_states if each is not None]
    state = GroupState(
        group,
        readiness,
        newest,
        dict(lag_by_topic),
        unreplicated=sum_lags((each.lag_records, each.lag_seconds) for each in known)
        if len(known) == len(last_states)
        else UNKNOWN_LAG,
    )
    return _Judged(inputs, state, _holds(seen, group, checkpoints, inputs, limits))


def _holds(
    seen: Observation,
    group: str,
    checkpoints: Sequence[NewestCheckpoint],
    inputs: GroupInputs,
    limits: ReadinessLimits,
) -> bool:
    """Whether later rounds judge the same: no checkpoint is newer than commits, or too fresh."""
    if not checkpoints:
        return True
    read_at = seen.source.groups_read_at.get(group)
    received_at = max(each.received_at for each in checkpoints)
    if group not in seen.source.unreadable_groups and (read_at is None or received_at >= read_at):
        return False
    newest = max(each.at for each in checkpoints)
    return not inputs.syncs_group_offsets or seen.at - newest > limits.group_sync_grace_period


def readiness_limits(flow: FlowSettings) -> ReadinessLimits:
    """The limits that *flow* sets."""
    return ReadinessLimits(
        max_redelivery_records=flow.readiness.max_redelivery_records,
        max_checkpoint_lag_records=flow.readiness.max_checkpoint_lag_records,
        # MirrorCheckpointTask commits on the target after it wrote the checkpoint, in rounds of its
        # own: a checkpoint may wait for one whole round, and its commit for the next.
        group_sync_grace_period=2 * flow.checkpoint_interval,
    )


def restored_groups(seen: Observation) -> tuple[GroupState, ...]:
    """The last verdicts of an earlier process, if the source has not been readable since."""
    if seen.source_readable:
        return ()
    verdicts = seen.internals.saved.verdicts
    return tuple(GroupState.restored(group, verdicts[group]) for group in sorted(verdicts))


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

    Groups are read every few seconds, checkpoints continuously: without those that were received
    from the time *newer_from* on, an active group would appear to be rewound behind its checkpoint.
    A group that was really rewound is detected at the next read. When they were written does not
    count: MirrorMaker 2's clock may be behind.
    """
    commit = inputs.commits[partition]
    copy = seen.plan.partitions(topic.pair.target, len(topic.partitions))[partition.partition]
    checkpoint = inputs.checkpoints.get(copy)
    untranslated, beyond_end = None, 0
    if inputs.ends_are_newer and state is not None and state.source_end is not None:
        beyond_end = max(commit - state.source_end, 0)
    if checkpoint is None:
        untranslated = _untranslated(seen, partition, commit)
    elif checkpoint.received_at >= newer_from and checkpoint.upstream > commit:
        commit = checkpoint.upstream
    head = None
    if state and state.quality is not None and state.target_end is not None:
        is_exact = state.quality in _EXACT
        next_offset = state.next_offset if is_exact else state.source_end
        head = None if next_offset is None else Head(next_offset, state.target_end, is_exact)
    return PartitionEvidence(
        partition,
        commit,
        checkpoint,
        _log(seen, copy),
        _missing(topic, copy),
        None if state is None else state.source_end,
        seen.internals.offset_map(partition),
        head,
        untranslated,
        inputs.target_commits.get(copy),
        beyond_end,
    )


def _missing(topic: TopicState, copy: TopicPartition) -> BlockReason | None:
    if topic.missing_on_target:
        return BlockReason.TARGET_TOPIC_MISSING
    exists = copy.partition < (topic.target_partition_count or 0)
    return None if exists else BlockReason.TARGET_PARTITIONS_MISSING


def _log(seen: Observation, copy: TopicPartition) -> LogRange | None:
    read = seen.target_offsets
    if read is None:
        return None
    start, end = read.starts.get(copy), read.ends.get(copy)
    return None if start is None or end is None else LogRange(start, end)


def _untranslated(seen: Observation, partition: TopicPartition, commit: int) -> Untranslated | None:
    """Why a checkpoint is missing; None where MirrorMaker 2 could write one and has not yet."""
    # MirrorCheckpointTask writes none for a commit that OffsetSyncStore cannot translate: before
    # the first sync of a partition, or behind the oldest one that it keeps.
    offset_map = seen.internals.offset_map(partition)
    if offset_map is None:
        return Untranslated.NO_SYNC
    return None if offset_map.reaches(commit) else Untranslated.BEHIND_OLDEST_SYNC
