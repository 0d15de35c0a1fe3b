"""Reads all data of the scopes, in the order that the verdicts require.

Positions, then end offsets of targets, then end offsets of sources. Partitions without offset syncs
get corresponding offsets by time.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from mm2slo_audit.scope.arrival_polls import TimelineKey, TopicTimeline
from mm2slo_audit.scope.audit_units import AuditUnit, Feed, not_audited_after, reason_for_error
from mm2slo_audit.scope.cluster_readings import (
    TopicSettings,
    read_first_timestamps,
    read_offsets_at,
    read_topic_settings,
)
from mm2slo_audit.scope.flow_topic_reader import (
    CommitsAndSyncs,
    read_commits_and_syncs,
    read_timeline,
)
from mm2slo_audit.scope.reachable_units import ReachableUnit
from mm2slo_audit.scope.scope_assembly import (
    FeedReading,
    OffsetReadings,
    UnitReading,
    partitions_of,
    source_isolation,
    target_isolation,
)
from mm2slo_audit.scope.sync_history import Commit
from mm2slo_core.audit.audit_scope import NotAudited, TimestampType, Window
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation

logger = logging.getLogger(__name__)

_SKEW_SECONDS: Final = 300.0
"""Tolerated clock skew between producers and a target with LogAppendTime."""

_TIMELINE_MARGIN_SECONDS: Final = 180.0
"""Idle topics are written once a minute: this margin includes a poll before the window."""

_ARRIVALS_MARGIN_SECONDS: Final = 300.0
"""Later arrivals have the brackets of the timeline."""


class ClusterSurvey:
    """The readings of one run. If a cluster fails, only its units are dropped."""

    def __init__(
        self,
        config: Config,
        clients: Mapping[str, ClusterClient],
        window: Window,
        on_progress: Callable[[str], None],
    ) -> None:
        self._config = config
        self._clients = clients
        self._window = window
        self._on_progress = on_progress
        self._units: list[ReachableUnit] = []
        self._internals: dict[str, CommitsAndSyncs] = {}
        self._kinds: dict[tuple[str, str], TopicSettings] = {}
        self._of_source: defaultdict[str, OffsetReadings] = defaultdict(OffsetReadings)
        self._of_target: defaultdict[str, OffsetReadings] = defaultdict(OffsetReadings)
        self.timelines: dict[TimelineKey, TopicTimeline] = {}
        self.arrivals: dict[TimelineKey, TopicTimeline] = {}
        self.not_audited: list[NotAudited] = []

    def read(self, units: Sequence[ReachableUnit]) -> None:
        """Read all data of *units*."""
        self._units = list(units)
        # The order of reads decides what may be called lost or extra. A record below the position
        # was acknowledged by the target before the position was written, so its copy is below the
        # target's end, read next; the original of any copy is below the source's end, read last.
        # In any other order records in flight would look lost, or their copies extra.
        self._on_progress("reading commits and offset syncs")
        for flow in self._flows():
            self._attempt(_is_fed_by(flow), partial(self._read_internals, flow))
        self._on_progress("reading offsets")
        for alias in sorted({each.unit.cluster for each in self._units}):
            self._attempt(_is_on_cluster(alias), partial(self._read_target_ends, alias))
        for flow in self._flows():
            self._attempt(_is_fed_by(flow), partial(self._read_source_ends, flow))
        for flow in self._flows():
            self._attempt(_is_fed_by(flow), partial(self._read_source_starts, flow))
        for alias in sorted({each.unit.cluster for each in self._units}):
            self._attempt(_is_on_cluster(alias), partial(self._read_target_starts, alias))
        self._drop_unread()
        for alias in sorted({each.unit.cluster for each in self._units}):
            self._read_timelines(alias)

    def readings(self) -> Iterator[UnitReading]:
        """The readings of each unit that could be read."""
        for reached in self._units:
            unit = reached.unit
            try:
                feeds = tuple(
                    self._feed_reading(reached, feed, count)
                    for feed, count in zip(unit.feeds, reached.source_partitions, strict=True)
                )
            except KafkaOperationError as problem:
                self.not_audited.append(not_audited_after(unit.topic, problem, unit.flows))
                continue
            yield UnitReading(
                unit,
                reached.partitions,
                self._of_target[unit.cluster],
                feeds,
                self._kinds.get((unit.cluster, unit.topic), TopicSettings()),
            )

    # -- steps -------------------------------------------------------------------------------

    def _attempt(self, is_affected: Callable[[AuditUnit], bool], step: Callable[[], None]) -> None:
        try:
            step()
        except (KafkaOperationError, TimeoutError) as error:
            self._drop(partial(_not_audited_if_affected, error, is_affected))

    def _drop(self, judge: Callable[[ReachableUnit], NotAudited | None]) -> None:
        kept = []
        for each in self._units:
            not_audited = judge(each)
            if not_audited is None:
                kept.append(each)
            else:
                self.not_audited.append(not_audited)
        self._units = kept

    def _read_internals(self, flow: FlowConfig) -> None:
        topics = {feed.topic for feed, _count in self._fed_by(flow)}
        self._internals[flow.label] = read_commits_and_syncs(flow, self._clients, topics)

    def _read_target_ends(self, alias: str) -> None:
        by_isolation: defaultdict[Isolation, list[TopicPartition]] = defaultdict(list)
        for each in self._units:
            if each.unit.cluster == alias:
                keys = partitions_of([each.unit.topic], {each.unit.topic: each.partitions})
                by_isolation[target_isolation(each.unit)] += keys
        for isolation, keys in by_isolation.items():
            self._of_target[alias].add_ends(self._clients[alias].end_offsets(keys, isolation))

    def _read_source_ends(self, flow: FlowConfig) -> None:
        keys = self._source_keys(flow)
        client = self._clients[flow.flow.source]
        if keys:
            reading = client.end_offsets(keys, source_isolation(flow))
            self._of_source[flow.label].add_ends(reading)

    def _read_source_starts(self, flow: FlowConfig) -> None:
        keys = self._source_keys(flow)
        client, readings = self._clients[flow.flow.source], self._of_source[flow.label]
        if not keys:
            return
        readings.add_starts(client.start_offsets(keys))
        readings.add_window_starts(client.offsets_at(keys, self._window.start / 1000))
        self._drop_predating_commits(flow)
        self._read_kinds(flow.flow.source, {key.topic for key in keys})

    def _drop_predating_commits(self, flow: FlowConfig) -> None:
        internals = self._internals[flow.label]
        dropped = find_predating_commits(
            self._clients[flow.flow.source],
            internals.commits,
            self._of_source[flow.label],
            self._window,
            0.0 if flow.exactly_once else flow.offset_flush_interval,
        )
        kept = {key: each for key, each in internals.commits.items() if key not in dropped}
        self._internals[flow.label] = replace(internals, commits=kept)

    def _read_target_starts(self, alias: str) -> None:
        client, readings = self._clients[alias], self._of_target[alias]
        units = [each for each in self._units if each.unit.cluster == alias]
        self._read_kinds(alias, {each.unit.topic for each in units})
        by_time: defaultdict[float, list[TopicPartition]] = defaultdict(list)
        for each in units:
            keys = partitions_of([each.unit.topic], {each.unit.topic: each.partitions})
            by_time[self._target_start_time(each.unit)] += keys
        for start_time, keys in by_time.items():
            readings.add_starts(client.start_offsets(keys))
            readings.add_window_starts(client.offsets_at(keys, start_time))

    def _target_start_time(self, unit: AuditUnit) -> float:
        """Lowest timestamp of copies of the window's records, epoch s.

        Copies keep their timestamps, unless the target sets its own, which are later.
        """
        kind = self._kinds.get((unit.cluster, unit.topic), TopicSettings())
        kept = all(feed.flow.audit.identity.timestamp for feed in unit.feeds)
        start = self._window.start / 1000
        if kept and kind.timestamps is TimestampType.CREATE:
            return start
        return max(0.0, start - _SKEW_SECONDS)

    def _read_kinds(self, alias: str, topics: Iterable[str]) -> None:
        found = read_topic_settings(self._clients[alias], set(topics))
        self._kinds |= {(alias, topic): kind for topic, kind in found.items()}

    def _read_timelines(self, alias: str) -> None:
        wanted: set[TimelineKey] = set()
        for each in self._units:
            if each.unit.cluster == alias:
                for feed in each.unit.feeds:
                    wanted.add((feed.flow.flow, Side.SOURCE, feed.topic))
                    wanted.add((feed.flow.flow, Side.TARGET, each.unit.topic))
        timeline = self._config.exporter.timeline
        start, end = self._window.start / 1000, self._window.end / 1000
        self._on_progress(f"reading the timeline on {alias}")
        for topic, since, until, timelines in (
            (timeline.topic, start - _TIMELINE_MARGIN_SECONDS, math.inf, self.timelines),
            (timeline.arrivals_topic, start, end + _ARRIVALS_MARGIN_SECONDS, self.arrivals),
        ):
            try:
                timelines.update(
                    read_timeline(self._clients[alias], topic, since, wanted, until=until)
                )
            except (KafkaOperationError, TimeoutError) as error:
                # Without them only latency is missing or less precise.
                logger.warning("cannot read the watermark timeline: %s", error)

    def _drop_unread(self) -> None:
        """Drop units with a partition whose offsets could not be read."""

        def judge(each: ReachableUnit) -> NotAudited | None:
            unit = each.unit
            targets = partitions_of([unit.topic], {unit.topic: each.partitions})
            sides = [(unit.cluster, self._of_target[unit.cluster], targets)]
            for feed, count in zip(unit.feeds, each.source_partitions, strict=True):
                keys = partitions_of([feed.topic], {feed.topic: count})
                sides.append((feed.flow.flow.source, self._of_source[feed.flow.label], keys))
            for alias, readings, keys in sides:
                for key in keys:
                    kind = readings.errors.get(key)
                    if kind is not None:
                        detail = f"cannot read the offsets of {key} on {alias} ({kind})"
                        return NotAudited(unit.topic, reason_for_error(kind), detail, unit.flows)
            return None

        self._drop(judge)

    # -- one feed ----------------------------------------------------------------------------

    def _feed_reading(self, reached: ReachableUnit, feed: Feed, count: int) -> FeedReading:
        flow, unit = feed.flow, reached.unit
        reading = FeedReading(
            feed,
            count,
            self._of_source[flow.label],
            self._internals.get(flow.label, CommitsAndSyncs()),
            self.timelines.get((flow.flow, Side.SOURCE, feed.topic)),
            self._kinds.get((flow.flow.source, feed.topic), TopicSettings()),
        )
        return add_offsets_by_time(
            reading, unit, reached.partitions, self._of_target[unit.cluster], self._clients
        )

    # -- of the units ------------------------------------------------------------------------

    def _flows(self) -> list[FlowConfig]:
        found = {feed.flow.label: feed.flow for each in self._units for feed in each.unit.feeds}
        return [found[label] for label in sorted(found)]

    def _fed_by(self, flow: FlowConfig) -> Iterator[tuple[Feed, int]]:
        for each in self._units:
            for feed, count in zip(each.unit.feeds, each.source_partitions, strict=True):
                if feed.flow.label == flow.label:
                    yield feed, count

    def _source_keys(self, flow: FlowConfig) -> list[TopicPartition]:
        return [
            TopicPartition(feed.topic, number)
            for feed, count in self._fed_by(flow)
            for number in range(count)
        ]


def _is_fed_by(flow: FlowConfig) -> Callable[[AuditUnit], bool]:
    return lambda unit: any(feed.flow.label == flow.label for feed in unit.feeds)


def _is_on_cluster(alias: str) -> Callable[[AuditUnit], bool]:
    return lambda unit: unit.cluster == alias


def _not_audited_if_affected(
    error: Exception, is_affected: Callable[[AuditUnit], bool], each: ReachableUnit
) -> NotAudited | None:
    return (
        not_audited_after(each.unit.topic, error, each.unit.flows)
        if is_affected(each.unit)
        else None
    )


def find_predating_commits(
    client: ClusterClient,
    commits: Mapping[TopicPartition, Commit],
    readings: OffsetReadings,
    window: Window,
    flush_interval: float,
) -> set[TopicPartition]:
    """Partitions whose commit may be of an earlier topic of that name.

    A commit has no topic id, only a time: what it covers was in the log before. *readings* have the
    starts, ends and window starts of the source. Raises KafkaOperationError.
    """
    # Offset of the first record that is younger than the commit.
    decisive: dict[TopicPartition, int] = {}
    young: dict[TopicPartition, int] = {}
    for key, commit in commits.items():
        start, at = readings.starts.get(key), readings.at.get(key)
        if start is None or at is None or not start <= commit.offset < readings.ends.get(key, 0):
            continue
        if commit.at * 1000 < window.start:
            if at <= commit.offset:
                decisive[key] = at
        elif at == start:
            covered = commit.at
            if commit.earlier is not None and commit.earlier.offset >= start:
                # A commit covers what was acknowledged since the one before it. If that one is
                # older than the log, this one may be as well.
                covered = max(commit.earlier.at, commit.at - flush_interval)
            young[key] = round(covered * 1000)
    found = read_offsets_at(client, young, at_least=True)
    decisive |= {key: at for key, at in found.items() if at == readings.starts[key]}
    # The time of a record beyond the window may be that of a clock ahead, and does not matter.
    beyond = read_offsets_at(client, dict.fromkeys(decisive, window.end))
    return {key for key, at in decisive.items() if beyond.get(key, at) > at}


def add_offsets_by_time(
    feed: FeedReading,
    unit: AuditUnit,
    partitions: int,
    target: OffsetReadings,
    clients: Mapping[str, ClusterClient],
) -> FeedReading:
    """*feed* with the offsets on the other side at the times of log starts and progress.

    *partitions* and *target* are those of the unit. Raises KafkaOperationError.
    """
    here = clients[feed.feed.flow.flow.source]
    there = clients[unit.cluster]
    source = feed.readings
    without = [
        number
        for number in range(min(feed.partitions, partitions))
        if feed.key(number) not in feed.internals.syncs
    ]
    removed = {
        key: (source.starts[key], source.ends[key])
        for key in map(feed.key, without)
        if source.starts[key]
    }
    # Another engine with another partition count may copy from any partition to any.
    anywhere = not feed.has_positions and feed.partitions != partitions
    cut = {
        key: (target.starts[key], target.ends[key])
        for number in (range(partitions) if anywhere else without)
        if target.starts[key := TopicPartition(unit.topic, number)]
    }
    # Rather leave too much unjudged than report false faults.
    at_source_start = read_offsets_at(
        there, _with_topic(read_first_timestamps(here, removed), unit.topic), at_least=True
    )
    started = _with_topic(read_first_timestamps(there, cut), feed.feed.topic)
    if anywhere:
        started = _latest_for_all(feed, started) if len(started) == len(cut) else {}
    at_target_start = read_offsets_at(here, started, at_least=True)
    return replace(
        feed,
        at_source_start=_by_number(at_source_start),
        at_target_start=_by_number(at_target_start),
        progress={} if feed.has_positions else _progress(feed, unit, partitions, target, clients),
    )


def _progress(
    feed: FeedReading,
    unit: AuditUnit,
    partitions: int,
    target: OffsetReadings,
    clients: Mapping[str, ClusterClient],
) -> Mapping[int, int]:
    """Source offsets older than the target's newest record by `max_pending`.

    A timestamp in the future counts as the current time.
    """
    last = {
        key: (max(target.starts[key], target.ends[key] - 1), target.ends[key])
        for number in range(partitions)
        if target.starts[key := TopicPartition(unit.topic, number)] < target.ends[key]
    }
    newest = read_first_timestamps(clients[unit.cluster], last)
    max_pending = round(feed.feed.flow.audit.max_pending * 1000)
    newest_of_all = max(newest.values(), default=None)
    present = round(feed.readings.requested_at * 1000)
    timestamps = {}
    for number in range(feed.partitions):
        there = TopicPartition(unit.topic, number)
        at = newest.get(there) if partitions == feed.partitions else newest_of_all
        if at is not None:
            timestamps[feed.key(number)] = min(at, present) - max_pending
    return _by_number(read_offsets_at(clients[feed.feed.flow.flow.source], timestamps))


def _with_topic(timestamps: Mapping[TopicPartition, int], topic: str) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, key.partition): at for key, at in timestamps.items()}


def _latest_for_all(
    feed: FeedReading, started: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """For each source partition the latest start of all target partitions."""
    if not started:
        return {}
    latest = max(started.values())
    return {feed.key(number): latest for number in range(feed.partitions)}


def _by_number(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {key.partition: offset for key, offset in offsets.items()}
