"""Failover readiness of the source's consumer groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.group_evidence import GroupEvidence
from mm2slo_core.group_readiness import (
    ReadinessLimits,
    evaluate_group,
    uncarried_without_commits,
)
from mm2slo_core.name_filters import GroupFilter
from mm2slo_core.time_slices import GroupOffsets
from mm2slo_exporter.state.flow_report import NO_UNJUDGED_GROUPS, GroupState, UnjudgedGroups
from mm2slo_exporter.state.group_inputs import (
    GroupInputs,
    TargetCommits,
    collect_inputs,
    gather_evidence,
)
from mm2slo_exporter.state.lag_sum import UNKNOWN_LAG, sum_lags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.flow_report import TopicState


_OWN_GROUPS: Final = ("mm2slo.leader.", "mm2slo.canary.")


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

    def __init__(self, flow: FlowConfig) -> None:
        self.use(flow)
        self._known: dict[str, _Judged] = {}
        self._last_read: dict[str, TopicState] = {}
        """The topics of the last round in which the source was readable."""

    def use(self, flow: FlowConfig) -> None:
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
        names = {group for group in names if not group.startswith(_OWN_GROUPS)}
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
    written = [each.checkpoint.at for each in evidence if each.checkpoint is not None]
    newest = max(written, default=None)
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
    return _Judged(inputs, state, _holds(seen, group, newest, inputs, limits))


def _holds(
    seen: Observation,
    group: str,
    newest: float | None,
    inputs: GroupInputs,
    limits: ReadinessLimits,
) -> bool:
    """Whether later rounds judge the same: no checkpoint is newer than commits, or too fresh."""
    if newest is None:
        return True
    read_at = seen.source.groups_read_at.get(group)
    if group not in seen.source.unreadable_groups and (read_at is None or newest >= read_at):
        return False
    return not inputs.syncs_group_offsets or seen.at - newest > limits.group_sync_grace_period


def readiness_limits(flow: FlowConfig) -> ReadinessLimits:
    """The limits that *flow* sets."""
    return ReadinessLimits(
        max_redelivery_records=flow.readiness.max_redelivery_records,
        max_checkpoint_lag_records=flow.readiness.max_checkpoint_lag_records,
        group_sync_grace_period=2 * flow.checkpoint_interval,
    )


def restored_groups(seen: Observation) -> tuple[GroupState, ...]:
    """The last verdicts of an earlier process, if the source has not been readable since."""
    if seen.source_readable:
        return ()
    verdicts = seen.internals.saved.verdicts
    return tuple(GroupState.restored(group, verdicts[group]) for group in sorted(verdicts))
