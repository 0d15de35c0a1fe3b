"""Lag of consumer groups on both clusters of a flow, and sums of the lag of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mm2slo_core.indicators.replication_lag import ArrivalHistory
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.flow_observation import ClusterView, Observation, OffsetsRead, empty_mapping

_MAX_POINTS: Final = 16
"""Of a partition's arrival history: the age of a record is then exact to a tenth, at 400
bytes for each partition on which a group lags."""


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A consumer group on one cluster, when its committed offsets were last read."""

    group: str
    cluster: str
    by_topic: Mapping[str, LagSum] = field(default_factory=empty_mapping)
    """By source topic, on the target as well."""
    state: str | None = None
    members: int | None = None


class _Measured(NamedTuple):
    commits: Mapping[TopicPartition, int]
    read_at: float | None
    ends: tuple[int | None, ...]
    """Of the partitions of `commits`, when these were read."""
    by_topic: Mapping[str, LagSum]

    def holds(self, commits: Mapping[TopicPartition, int], ends: tuple[int | None, ...]) -> bool:
        """Whether a later reading gives the same: there is no lag, which would have an age."""
        is_same = ends == self.ends and commits == self.commits
        return is_same and not any(each.records for each in self.by_topic.values())


class FlowGroupLags:
    """The groups of a flow on its source, then those on its target."""

    def __init__(self, flow: Flow) -> None:
        self._source = GroupLagTracker(flow.source)
        self._target = GroupLagTracker(flow.target)

    def observe(self, seen: Observation) -> tuple[GroupLag, ...]:
        """The groups on readable clusters, measured by one observation."""
        data = [pair for pair in seen.plan.pairs if pair.role is TopicRole.DATA]
        source = seen.source_offsets if seen.source_readable else None
        target = seen.target_offsets if seen.target_readable else None
        return (
            *self._source.observe(seen.at, seen.source, source, {p.source: p.source for p in data}),
            *self._target.observe(seen.at, seen.target, target, {p.target: p.source for p in data}),
        )


class GroupLagTracker:
    """Measures the lag of each group once per reading of its commits.

    Against the end offsets at that time, by the polls before and after: later ones would count
    records that the group has committed since.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._arrivals = _Arrivals()
        self._before = self._polled = OffsetsRead()
        """The latest two polls of end offsets."""
        self._measured: dict[str, _Measured] = {}
        self._topics: Mapping[str, str] = {}

    def observe(
        self, at: float, view: ClusterView, ends: OffsetsRead | None, topics: Mapping[str, str]
    ) -> tuple[GroupLag, ...]:
        """The groups with commits on *topics*: source topic by topic of this cluster.

        *ends* is None while the cluster is unreadable: nothing is known then.
        """
        if ends is None:
            return ()
        self._arrivals.observe(ends, view.group_offsets)
        if ends.requested_at != self._polled.requested_at:
            self._before, self._polled = self._polled, ends
        if topics != self._topics:
            self._topics = topics
            self._measured.clear()
        measured: dict[str, _Measured] = {}
        for group, commits in view.group_offsets.items():
            if group in view.unreadable_groups:
                continue
            read_at, known = view.groups_read_at.get(group), self._measured.get(group)
            if known is None or known.read_at != read_at or known.commits != commits:
                of_group = self._ends_at(read_at, commits)
                by_topic = (
                    known.by_topic
                    if known is not None and known.holds(commits, of_group)
                    else self._measure(at, commits, of_group)
                )
                known = _Measured(commits, read_at, of_group, by_topic)
            measured[group] = known
        self._measured = measured
        return tuple(
            GroupLag(
                group,
                self._cluster,
                measured[group].by_topic,
                view.group_states.get(group),
                view.group_members.get(group),
            )
            for group in sorted(measured)
            if measured[group].by_topic
        )

    def _ends_at(
        self, read_at: float | None, partitions: Iterable[TopicPartition]
    ) -> tuple[int | None, ...]:
        """The end offsets at *read_at*, as if records arrived evenly between the two polls."""
        before, after = self._before, self._polled
        earlier, ends = (tuple(map(each.ends.get, partitions)) for each in (before, after))
        length = after.requested_at - before.requested_at
        has_stepped_back = length < 0  # the clock
        if read_at is None or read_at >= after.requested_at or earlier == ends or has_stepped_back:
            return ends
        share = min((after.requested_at - read_at) / length, 1.0)
        return tuple(
            end
            if end is None or start is None or start > end
            else end - round(share * (end - start))
            for start, end in zip(earlier, ends, strict=True)
        )

    def _measure(
        self,
        at: float,
        commits: Mapping[TopicPartition, int],
        ends: tuple[int | None, ...],
    ) -> Mapping[str, LagSum]:
        by_topic: dict[str, list[LagSum]] = {}
        for (partition, commit), end in zip(commits.items(), ends, strict=True):
            topic = self._topics.get(partition.topic)
            if topic is not None:
                by_topic.setdefault(topic, []).append(self._unread(at, partition, commit, end))
        return {topic: sum_lags(found) for topic, found in by_topic.items()}

    def _unread(self, at: float, partition: TopicPartition, commit: int, end: int | None) -> LagSum:
        if end is None or commit > self._polled.ends[partition]:  # truncated or re-created
            return UNKNOWN_LAG
        oldest = max(commit, self._polled.starts.get(partition, 0))
        if oldest >= end:
            return LagSum(0, 0.0)
        arrival = self._arrivals.history(partition).arrived(oldest)
        return LagSum(end - oldest, None if arrival is None else at - arrival.likely)


class _Arrivals:
    """Arrival times of the records that a group has not read."""

    def __init__(self) -> None:
        self._histories: dict[TopicPartition, ArrivalHistory] = {}
        self._commits: Mapping[str, Mapping[TopicPartition, int]] = {}
        self._oldest: Mapping[TopicPartition, int] = {}
        """The lowest of the commits of each partition."""
        self._ends: list[int | None] = []
        """Of the partitions of `_oldest`, as they were added."""
        self._polled_at: float | None = None

    def observe(
        self, read: OffsetsRead, commits: Mapping[str, Mapping[TopicPartition, int]]
    ) -> None:
        """Add a poll; records below all *commits* are forgotten."""
        if read.requested_at == self._polled_at:
            return
        if commits is not self._commits:
            self._use(commits)
        ends = list(map(read.ends.get, self._oldest))
        if ends != self._ends:
            for partition, end, before in zip(self._oldest, ends, self._ends, strict=True):
                if end != before:
                    self._add(partition, end, read)
            self._ends = ends
        self._polled_at = read.requested_at

    def history(self, partition: TopicPartition) -> ArrivalHistory:
        return self._histories[partition]

    def _use(self, commits: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        oldest: dict[TopicPartition, int] = {}
        for offsets in commits.values():
            for partition, offset in offsets.items():
                oldest[partition] = min(offset, oldest.get(partition, offset))
        added = dict(zip(self._oldest, self._ends, strict=True))
        known, self._histories = self._histories, {}
        for partition, offset in oldest.items():
            history = known.get(partition)
            if history is None:
                history = ArrivalHistory(_MAX_POINTS)
            history.forget_below(offset)
            self._histories[partition] = history
        self._ends = list(map(added.get, oldest))
        self._commits, self._oldest = commits, oldest

    def _add(self, partition: TopicPartition, end: int | None, read: OffsetsRead) -> None:
        if end is None:
            # When the missed records arrived will not be known.
            self._histories[partition] = ArrivalHistory(_MAX_POINTS)
            return
        history = self._histories[partition]
        history.add(self._polled_at, read.answered_at, end)
        history.forget_below(self._oldest[partition])


class LagSum(NamedTuple):
    """Records that were not replicated or consumed, and the age of the oldest; None if unknown."""

    records: int | None
    seconds: float | None


UNKNOWN_LAG: Final = LagSum(None, None)


def sum_lags(found: Iterable[tuple[int | None, float | None]]) -> LagSum:
    """The sum of the records and the greatest age."""
    every = list(found)
    return LagSum(
        sum_known([records for records, _seconds in every]),
        largest_known([seconds for _records, seconds in every]),
    )


def sum_known(values: Sequence[int | None]) -> int | None:
    """Sum of the known values; None when it is 0 as far as known, and some are unknown."""
    total = sum(filter(None, values))
    return total if total or None not in values else None


def largest_known(values: Sequence[float | None]) -> float | None:
    """The largest value; None when it is 0 as far as known, and some are unknown."""
    largest = max([value for value in values if value is not None], default=0.0)
    return largest if largest > 0 or None not in values else None
