"""Collects the evidence for a cutover of one flow.

One round does not show since when nothing was written, or since when a group's commits are the
same: `CutoverWatch` follows that in each round. The rest is in the newest round already, and
`CutoverReads` has what is read only while clients ask.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.config.exporter_settings import CanaryCarrier, FlowSettings
from mm2slo_core.cutover.cutover_evidence import (
    AccessFacts,
    Cases,
    CutoverEvidence,
    GroupFact,
    TaskFact,
)
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.topic_filters import GroupFilter
from mm2slo_core.topic_selection import TopicRole, replication_policy
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import ClusterView, Observation, OffsetsRead
from mm2slo_exporter.state.failover_readiness import OWN_GROUPS
from mm2slo_exporter.state.flow_report import FlowReport, GroupState, PartitionState, TopicState

ASKED_SECONDS: Final = 900.0
"""After the last question, what is read for cutovers only is no longer read."""

_SHOWN: Final = 20
_LAG_SECONDS: Final = 60.0
_GROWTH_SECONDS: Final = 1.0
"""Less is the resolution of the figures, not growth."""

_SYNC_INTERVAL: Final = "sync.group.offsets.interval.seconds"
_SYNC_SECONDS: Final = 60.0
"""Kafka's default (`MirrorCheckpointConfig`)."""

_DATA: Final = frozenset({TopicRole.DATA, TopicRole.UNSELECTED})


class UnreadTail(NamedTuple):
    """Offsets of a partition from a group's commit, or the start of the log, to the end."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CutoverReads:
    """What was read for a cutover only."""

    read_at: float | None = None
    """When the last stable offsets were requested."""
    stable_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    tails: Mapping[UnreadTail, bool] = field(default_factory=dict)
    """Whether a tail has a record: markers and compacted records take up offsets, too."""
    access: AccessFacts | None = None
    quiet: tuple[float, float] | None = None
    """When it was asked, and a timestamp that no record has or exceeds."""


class _Ends(NamedTuple):
    """The ends of a topic on the source."""

    partitions: Sequence[PartitionState]
    ends: int
    """A hash of them all."""
    seen_at: float
    """When the topic was first read; minus infinity if it was there before."""
    changed_at: float
    """When they were first read as they are: the change is not later."""
    changed_after: float
    """When they were last requested as they were: the change is not earlier."""


class CutoverWatch:
    """Follows one flow. Rounds come from one thread, questions from others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, _Ends] = {}
        self._commits: dict[str, tuple[Mapping[TopicPartition, int], float]] = {}
        self._lags: deque[tuple[float, float]] = deque()
        self._newest: tuple[Observation, FlowReport, FlowSettings] | None = None
        self._watched_since: float | None = None
        self._asked_at = -inf

    def observe(self, seen: Observation, report: FlowReport, flow: FlowSettings) -> None:
        """Add one round; *flow* has the settings of the running connectors."""
        with self._lock:
            if report.ready and seen.source_readable and seen.source_offsets is not None:
                self._observe_ends(seen.source_offsets, report)
                self._observe_commits(seen)
            is_asked = self.is_asked(seen.at)
            self._newest = (seen, report, flow) if is_asked else None
            if is_asked:
                self._observe_lag(report)
            else:
                self._watched_since = None
                self._lags.clear()

    def is_asked(self, at: float) -> bool:
        """Whether the last question is recent."""
        return at - self._asked_at <= ASKED_SECONDS

    def ask(self, at: float) -> float:
        """Keep the evidence of the next rounds; since when it is kept."""
        with self._lock:
            self._asked_at = at
            if self._watched_since is None:
                self._watched_since = at
            return self._watched_since

    def evidence(self, at: float, reads: CutoverReads) -> CutoverEvidence | None:
        """What is known at *at*; None before the first round after a question."""
        watched_since = self.ask(at)
        with self._lock:
            if self._newest is None:
                return None
            seen, report, flow = self._newest
            topics, commits = dict(self._topics), dict(self._commits)
            grows = self._lag_grows(seen.at)
        collector = _Collector(
            seen, report, flow, reads=reads, ends=topics, commits=commits, since=watched_since
        )
        return collector.evidence(grows)

    def unread_tails(self) -> Sequence[UnreadTail]:
        """What groups have not read, the shortest tails first."""
        with self._lock:
            newest = self._newest
        if newest is None:
            return ()
        return sorted(set(_tails(*newest[:2])), key=lambda tail: tail.end - tail.start)

    def ends(self) -> tuple[Mapping[TopicPartition, int], float]:
        """The ends of the source's data topics, and when they were first read as they are."""
        with self._lock:
            newest, topics = self._newest, list(self._topics.values())
        if newest is None:
            return {}, inf
        ends = {
            TopicPartition(topic.pair.source, each.partition): each.source_end
            for topic in _data_topics(newest[1])
            for each in topic.partitions
            if each.source_end is not None
        }
        return ends, max((each.changed_at for each in topics), default=inf)

    def pairs(self) -> tuple[Mapping[str, int], Mapping[str, str], Sequence[str]]:
        """Partition counts of the flow's data topics, their copies, and its groups."""
        with self._lock:
            newest = self._newest
        if newest is None:
            return {}, {}, ()
        topics = _data_topics(newest[1])
        counts = {each.pair.source: len(each.partitions) for each in topics}
        copies = {each.pair.source: each.pair.target for each in topics if each.pair.target}
        return counts, copies, [each.group for each in newest[1].groups]

    def _observe_ends(self, read: OffsetsRead, report: FlowReport) -> None:
        before, self._topics = self._topics, {}
        is_first = not before
        for topic in report.topics:
            if topic.pair.role not in _DATA:
                continue
            name = topic.pair.source
            known = before.get(name)
            if known is not None and known.partitions is topic.partitions:
                self._topics[name] = known  # of a topic at rest
                continue
            found = tuple(each.source_end for each in topic.partitions)
            if None in found:
                if known is not None:
                    self._topics[name] = known  # without an answer, nothing has changed
                continue
            ends = hash(found)
            if known is not None and known.ends == ends:
                self._topics[name] = known._replace(partitions=topic.partitions)
                continue
            self._topics[name] = _Ends(
                topic.partitions,
                ends,
                known.seen_at if known else -inf if is_first else read.answered_at,
                read.answered_at,
                -inf if known is None else read.previous_requested_at or -inf,
            )

    def _observe_commits(self, seen: Observation) -> None:
        before, self._commits = self._commits, {}
        for group, offsets in seen.source.group_offsets.items():
            known = before.get(group)
            at = seen.source.groups_read_at.get(group, seen.at)
            # The reader keeps the object while the offsets are the same.
            is_same = known is not None and known[0] is offsets
            self._commits[group] = known if known is not None and is_same else (offsets, at)

    def _observe_lag(self, report: FlowReport) -> None:
        if report.lag_seconds is None:
            self._lags.clear()
            return
        self._lags.append((report.at, report.lag_seconds))
        while report.at - self._lags[0][0] > _LAG_SECONDS:
            self._lags.popleft()

    def _lag_grows(self, at: float) -> bool | None:
        """Whether the lag was larger in all of the last half minute than in the half before."""
        if not self._lags or at - self._lags[0][0] < _LAG_SECONDS * 0.8:
            return None
        middle = at - _LAG_SECONDS / 2
        first = [lag for when, lag in self._lags if when < middle]
        second = [lag for when, lag in self._lags if when >= middle]
        if not first or not second:
            return None
        return min(second) > max(first) + _GROWTH_SECONDS


class _Collector:
    """Makes the evidence of one round."""

    def __init__(
        self,
        seen: Observation,
        report: FlowReport,
        flow: FlowSettings,
        *,
        reads: CutoverReads,
        ends: Mapping[str, _Ends],
        commits: Mapping[str, tuple[Mapping[TopicPartition, int], float]],
        since: float,
    ) -> None:
        self._seen = seen
        self._report = report
        self._flow = flow
        self._reads = reads
        self._ends = ends
        self._commits = commits
        self._watched_since = since
        self._topics = _data_topics(report)
        self._by_name = {each.pair.source: each for each in self._topics}
        self._policy = replication_policy(flow)

    def evidence(self, lag_grows: bool | None) -> CutoverEvidence:
        seen, report, flow = self._seen, self._report, self._flow
        has_canaries = report.info.canary != CanaryCarrier.OFF
        frozen_from = max((each.changed_at for each in self._ends.values()), default=None)
        read = seen.source_offsets
        return CutoverEvidence(
            flow=report.flow.label,
            at=seen.at,
            watched_since=self._watched_since,
            waiting_for=report.waiting_for,
            unreadable=tuple(
                alias
                for alias, readable in (
                    (report.flow.source, report.source_readable),
                    (report.flow.target, report.target_readable),
                )
                if not readable
            ),
            state=report.state.value,
            state_reason=str(report.state_reason),
            arrived_at=(report.canary_arrived_at if has_canaries else report.heartbeats.arrived_at),
            arrival_within=(
                flow.canary.deadline
                if has_canaries
                else max(flow.canary.deadline, 2 * flow.heartbeat_interval)
            ),
            canaries=has_canaries,
            tasks=tuple(
                TaskFact(each.connector, each.task, each.state.lower()) for each in report.tasks
            ),
            source_connector=flow.connect.source_connector,
            checkpoint_connector=flow.connect.checkpoint_connector,
            partitions=sum(len(topic.partitions) for topic in self._topics),
            lag_seconds=report.lag_seconds,
            lag_limit=max((each.threshold for each in flow.freshness), default=_LAG_SECONDS),
            lag_grows=lag_grows,
            frozen_from=frozen_from,
            frozen_until=read.requested_at if read is not None else None,
            quiet_after=self._quiet_after(frozen_from),
            written=self._written(),
            written_at=max(
                (e.changed_at for e in self._ends.values() if self._is_written(e)), default=None
            ),
            unread_ends=_cases(
                f"{topic.pair.source}-{each.partition}"
                for topic in self._topics
                for each in topic.partitions
                if each.source_end is None
            ),
            transactions_read_at=self._reads.read_at,
            open_transactions=self._open_transactions(),
            unread_transactions=self._unread_transactions(),
            new_topics=_cases(
                f"{name}: first seen {seen.at - each.seen_at:.0f} s ago"
                for name, each in self._ends.items()
                if each.seen_at > self._watched_since
            ),
            newest_topic_at=max(
                (each.seen_at for each in self._ends.values() if each.seen_at > -inf), default=None
            ),
            missing_copies=_cases(self._missing_copies()),
            partition_differences=_cases(self._partition_differences()),
            setting_differences=_cases(
                f"{topic.pair.source}: {', '.join(topic.config_drift)}"
                for topic in self._topics
                if topic.config_drift
            ),
            settings_read=bool(seen.source.retention_configs or not self._topics),
            behind=_cases(self._behind()),
            unknown_positions=_cases(self._unknown_positions()),
            filtered=_cases(
                f"{topic.pair.source}-{each.partition}"
                for topic in self._topics
                if topic.pair.may_drop
                for each in topic.partitions
                if each.quality is PositionQuality.FILTERED
            ),
            groups_read=seen.source.groups_complete and seen.target.groups_complete,
            groups_listed_at=_older(seen.source.groups_listed_at, seen.target.groups_listed_at),
            unread_groups=_cases(
                sorted(seen.source.unreadable_groups | seen.target.unreadable_groups)
            ),
            group_types_known=report.unjudged_groups.all_types,
            groups=tuple(map(self._group, report.groups)),
            uncommitted_source_groups=self._uncommitted_groups(seen.source),
            uncommitted_target_groups=self._uncommitted_groups(seen.target),
            excluded_groups=report.unjudged_groups.excluded,
            settles_after=(
                flow.offset_flush_interval
                + 2 * flow.checkpoint_interval
                + 2 * self._sync_interval()
            ),
            access=self._reads.access,
        )

    def _sync_interval(self) -> float:
        """Of group offsets; 0 if MirrorMaker 2 does not sync them."""
        running = self._seen.internals.connectors
        if not running.syncs_group_offsets:
            return 0.0
        stated = running.by_name.get(self._flow.connect.checkpoint_connector)
        text = stated.settings.get(_SYNC_INTERVAL, "") if stated else ""
        return float(text) if text.isdecimal() else _SYNC_SECONDS

    def _quiet_after(self, frozen_from: float | None) -> float | None:
        """None if the ends have changed since it was read."""
        quiet = self._reads.quiet
        if quiet is None or frozen_from is None or quiet[0] < frozen_from:
            return None
        return quiet[1]

    def _written(self) -> Cases:
        """Topics with a record that is certainly newer than the first question."""
        found = sorted(
            (-each.changed_at, name) for name, each in self._ends.items() if self._is_written(each)
        )
        return _cases(f"{name}: {self._seen.at + changed:.0f} s ago" for changed, name in found)

    def _is_written(self, ends: _Ends) -> bool:
        return ends.changed_after >= self._watched_since

    def _open_transactions(self) -> Cases:
        """Partitions whose last stable offset is below the end that was read before it."""
        found = []
        for topic, state in self._partitions():
            partition = TopicPartition(topic.pair.source, state.partition)
            stable = self._reads.stable_ends.get(partition)
            if stable is not None and state.source_end is not None and stable < state.source_end:
                found.append(f"{partition}: {plural(state.source_end - stable, 'offset')}")
        return _cases(found)

    def _unread_transactions(self) -> Cases:
        if self._reads.read_at is None:
            return Cases()
        return _cases(
            str(partition)
            for topic, state in self._partitions()
            if (partition := TopicPartition(topic.pair.source, state.partition))
            not in self._reads.stable_ends
        )

    def _missing_copies(self) -> Iterator[str]:
        for topic in self._topics:
            if topic.pair.role is TopicRole.UNSELECTED:
                yield f"{topic.pair.source}: the running connector does not select it"
            elif topic.missing_on_target:
                yield f"{topic.pair.source}: no {topic.pair.target}"

    def _partition_differences(self) -> Iterator[str]:
        for topic in self._topics:
            ours, theirs = topic.source_partition_count, topic.target_partition_count
            if ours is not None and theirs is not None and ours != theirs:
                yield f"{topic.pair.source}: {ours}, {topic.pair.target}: {theirs}"

    def _behind(self) -> Iterator[str]:
        for topic, state in self._unrested():
            if state.lag_records:
                where = f"{topic.pair.source}-{state.partition}"
                yield f"{where}: {plural(state.lag_records, 'record')}, by {state.quality}"

    def _unknown_positions(self) -> Iterator[str]:
        for topic, state in self._partitions():
            # A bounded position is the highest possible one: no lag proves nothing.
            is_bounded = state.quality is PositionQuality.BOUNDED and not state.lag_records
            if state.lag_records is None or is_bounded or state.target_end is None:
                yield f"{topic.pair.source}-{state.partition}: {state.quality or 'not read'}"

    def _unrested(self) -> Iterator[tuple[TopicState, PartitionState]]:
        for topic in self._topics:
            if not topic.at_rest:
                for state in topic.partitions:
                    yield topic, state

    def _partitions(self) -> Iterator[tuple[TopicState, PartitionState]]:
        for topic in self._topics:
            for state in topic.partitions:
                yield topic, state

    def _group(self, state: GroupState) -> GroupFact:
        seen, group, judged = self._seen, state.group, state.readiness
        known = self._commits.get(group)
        remaining, uncommitted, unsynced = self._progress(group)
        return GroupFact(
            group=group,
            carried=group not in seen.source.uncarried_groups,
            members_on_source=_has_members(seen.source, group),
            members_on_target=_has_members(seen.target, group),
            remaining=remaining,
            uncommitted=uncommitted,
            unsynced=unsynced,
            unsynced_origins=self._unsynced_origins(group),
            checkpoint_lag=judged.checkpoint_lag,
            redelivery_least=judged.redelivery_lower,
            redelivery_most=judged.redelivery_upper,
            skipped_least=judged.skipped[0],
            skipped_most=judged.skipped[1],
            blocked=tuple(each.reason.value for each in judged.blocked),
            commits_read_at=(None if group in seen.source.unreadable_groups else state.commits_at),
            commits_changed_at=known[1] if known else None,
        )

    def _uncommitted_groups(self, view: ClusterView) -> tuple[str, ...]:
        """Active groups without a commit; those with commits on other topics alone read these."""
        if not (self._seen.source.groups_complete and self._seen.target.groups_complete):
            return ()
        wants = GroupFilter(self._flow.groups, self._flow.groups_exclude).matches
        others = view.group_states.keys() - view.group_offsets.keys()
        others -= {each.group for each in self._report.groups}
        return tuple(
            group
            for group in sorted(others)
            if view.is_active(group) and wants(group) and not group.startswith(OWN_GROUPS)
        )

    def _progress(self, group: str) -> tuple[int | None, int, int]:
        """`remaining`, `uncommitted` and `unsynced` of a `GroupFact`, over its topics alone."""
        commits = self._seen.source.group_offsets.get(group)
        if commits is None:
            return None, 0, 0
        there = self._seen.target.group_offsets.get(group, {})
        remaining: int | None = 0
        uncommitted = unsynced = 0
        for topic, state, partition, commit in _partitions_of(commits, self._by_name):
            tail = _tail(partition, state, commit)
            has_record = None if tail is None else self._has_record(tail)
            if commit is None and has_record is not None:
                # A group that commits on a topic and not on all of it has not seen the rest.
                uncommitted += has_record
            elif tail is None or has_record is None or remaining is None:
                remaining = None
            else:
                remaining += has_record * (tail.end - tail.start)
            if commit is None:
                continue
            copies = self._seen.plan.partitions(topic.pair.target, len(topic.partitions))
            is_empty_there = state.target_end == state.target_start
            unsynced += not is_empty_there and copies[state.partition] not in there
        return remaining, uncommitted, unsynced

    def _has_record(self, tail: UnreadTail) -> bool | None:
        """None if that was not read yet."""
        return tail.start < tail.end and self._reads.tails.get(tail)

    def _unsynced_origins(self, group: str) -> tuple[str, ...]:
        """MirrorMaker 2 translates positions along the flow alone, not those on copies back."""
        policy, there = self._policy, self._seen.target.group_offsets.get(group, {})
        found = set()
        for copy in self._seen.source.group_offsets.get(group, {}):
            origin = policy.upstream_topic(copy.topic)
            is_own = policy.topic_source(copy.topic) == self._flow.flow.target
            if origin and is_own and TopicPartition(origin, copy.partition) not in there:
                found.add(origin)
        return tuple(sorted(found))


def _has_members(view: ClusterView, group: str) -> bool | None:
    """None for a state that the client does not know."""
    return None if view.group_states.get(group) == "unknown" else view.is_active(group)


def _older(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else min(one, other)


def _data_topics(report: FlowReport) -> list[TopicState]:
    return [each for each in report.topics if each.pair.role in _DATA]


def _partitions_of(
    commits: Mapping[TopicPartition, int], topics: Mapping[str, TopicState]
) -> Iterator[tuple[TopicState, PartitionState, TopicPartition, int | None]]:
    """All partitions of the *topics* on which a group commits, with its commits there."""
    for name in dict.fromkeys(partition.topic for partition in commits):
        topic = topics.get(name)
        if topic is None:
            continue
        for state in topic.partitions:
            partition = TopicPartition(name, state.partition)
            yield topic, state, partition, commits.get(partition)


def _tails(seen: Observation, report: FlowReport) -> Iterator[UnreadTail]:
    topics = {each.pair.source: each for each in _data_topics(report)}
    for group in report.groups:
        commits = seen.source.group_offsets.get(group.group, {})
        for _topic, state, partition, commit in _partitions_of(commits, topics):
            tail = _tail(partition, state, commit)
            if tail is not None and tail.start < tail.end:
                yield tail


def _tail(
    partition: TopicPartition, state: PartitionState, commit: int | None
) -> UnreadTail | None:
    """What a group has not read; None if its start or its end is not known."""
    known = [each for each in (commit, state.source_start) if each is not None]
    if state.source_end is None or not known:
        return None
    return UnreadTail(partition, max(known), state.source_end)


def _cases(texts: Iterable[str]) -> Cases:
    found = list(texts)
    return Cases(len(found), tuple(found[:_SHOWN]))
