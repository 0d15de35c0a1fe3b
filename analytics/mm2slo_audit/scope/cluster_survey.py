"""Reads everything that the scopes are made of, in the order that the verdicts rest on.

Positions, then the targets' ends, then the sources' ends.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.commits_and_syncs import CommitsAndSyncs, read_commits_and_syncs
from mm2slo_audit.scope.not_audited_reasons import failed, reason_for_error
from mm2slo_audit.scope.offset_snapshot import (
    OffsetReadings,
    partitions_of,
    source_isolation,
    target_isolation,
)
from mm2slo_audit.scope.offsets_by_time import add_offsets_by_time
from mm2slo_audit.scope.timeline_reader import read_timeline
from mm2slo_audit.scope.topic_listing import TopicSettings, read_topic_settings
from mm2slo_audit.scope.unit_assembly import FeedReading, UnitReading
from mm2slo_core.audit.audit_scope import NotAudited, TimestampType
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mm2slo_audit.scope.arrival_polls import TimelineKey, TopicTimeline
    from mm2slo_audit.scope.audit_units import Feed, Unit
    from mm2slo_audit.scope.reachable_units import ReachableUnit
    from mm2slo_core.audit.audit_scope import Window
    from mm2slo_core.config import Config
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation

logger = logging.getLogger(__name__)

_SKEW_SECONDS: Final = 300.0
"""By how much a target's clock may be behind a producer's, where the target stamps records."""
_TIMELINE_MARGIN_SECONDS: Final = 180.0
"""A topic at rest is written once a minute: so far back there is a poll before the window."""


class ClusterSurvey:
    """The readings of one run. A cluster that fails takes its units with it, and nothing else."""

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
        self._tell = on_progress
        self._units: list[ReachableUnit] = []
        self._internals: dict[str, CommitsAndSyncs] = {}
        self._kinds: dict[tuple[str, str], TopicSettings] = {}
        self._of_source: defaultdict[str, OffsetReadings] = defaultdict(OffsetReadings)
        self._of_target: defaultdict[str, OffsetReadings] = defaultdict(OffsetReadings)
        self.timelines: dict[TimelineKey, TopicTimeline] = {}
        self.not_audited: list[NotAudited] = []

    def take(self, units: Sequence[ReachableUnit]) -> None:
        """Read all that *units* need."""
        self._units = list(units)
        self._tell("reading commits and offset syncs")
        for flow in self._flows():
            self._attempt(_feeds(flow), partial(self._read_internals, flow))
        self._tell("reading offsets")
        for alias in sorted({each.unit.cluster for each in self._units}):
            self._attempt(_on(alias), partial(self._read_target_ends, alias))
        for flow in self._flows():
            self._attempt(_feeds(flow), partial(self._read_source_ends, flow))
        for flow in self._flows():
            self._attempt(_feeds(flow), partial(self._read_source_begins, flow))
        for alias in sorted({each.unit.cluster for each in self._units}):
            self._attempt(_on(alias), partial(self._read_target_begins, alias))
        self._drop_unread()
        for alias in sorted({each.unit.cluster for each in self._units}):
            self._read_timeline(alias)

    def readings(self) -> Iterator[UnitReading]:
        """What was read of each unit that could be."""
        for reached in self._units:
            unit = reached.unit
            try:
                feeds = tuple(
                    self._feed_reading(reached, feed, count)
                    for feed, count in zip(unit.feeds, reached.source_partitions, strict=True)
                )
            except KafkaOperationError as problem:
                self.not_audited.append(failed(unit.topic, problem, unit.flows))
                continue
            yield UnitReading(
                unit,
                reached.partitions,
                self._of_target[unit.cluster],
                feeds,
                self._kinds.get((unit.cluster, unit.topic), TopicSettings()),
            )

    # -- steps -------------------------------------------------------------------------------

    def _attempt(self, concerns: Callable[[Unit], bool], step: Callable[[], None]) -> None:
        try:
            step()
        except (KafkaOperationError, TimeoutError) as error:
            self._drop(partial(_refusal, error, concerns))

    def _drop(self, judge: Callable[[ReachableUnit], NotAudited | None]) -> None:
        kept = []
        for each in self._units:
            refused = judge(each)
            if refused is None:
                kept.append(each)
            else:
                self.not_audited.append(refused)
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
            self._of_target[alias].take_ends(self._clients[alias].end_offsets(keys, isolation))

    def _read_source_ends(self, flow: FlowConfig) -> None:
        keys = self._source_keys(flow)
        client = self._clients[flow.flow.source]
        if keys:
            reading = client.end_offsets(keys, source_isolation(flow))
            self._of_source[flow.label].take_ends(reading)

    def _read_source_begins(self, flow: FlowConfig) -> None:
        keys = self._source_keys(flow)
        client, readings = self._clients[flow.flow.source], self._of_source[flow.label]
        if not keys:
            return
        readings.take_starts(client.start_offsets(keys))
        readings.take_at(client.offsets_at(keys, self._window.start / 1000))
        self._read_kinds(flow.flow.source, {key.topic for key in keys})

    def _read_target_begins(self, alias: str) -> None:
        client, readings = self._clients[alias], self._of_target[alias]
        units = [each for each in self._units if each.unit.cluster == alias]
        self._read_kinds(alias, {each.unit.topic for each in units})
        by_moment: defaultdict[float, list[TopicPartition]] = defaultdict(list)
        for each in units:
            keys = partitions_of([each.unit.topic], {each.unit.topic: each.partitions})
            by_moment[self._target_moment(each.unit)] += keys
        for moment, keys in by_moment.items():
            readings.take_starts(client.start_offsets(keys))
            readings.take_at(client.offsets_at(keys, moment))

    def _target_moment(self, unit: Unit) -> float:
        """From when on copies of the window's records are on the target, epoch s.

        Copies keep their timestamps; where the target sets its own they come after the source's.
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

    def _read_timeline(self, alias: str) -> None:
        wanted: set[TimelineKey] = set()
        for each in self._units:
            if each.unit.cluster == alias:
                for feed in each.unit.feeds:
                    wanted.add((feed.flow.flow, Side.SOURCE, feed.topic))
                    wanted.add((feed.flow.flow, Side.TARGET, each.unit.topic))
        since = self._window.start / 1000 - _TIMELINE_MARGIN_SECONDS
        topic = self._config.exporter.timeline.topic
        self._tell(f"reading the timeline on {alias}")
        try:
            self.timelines |= read_timeline(self._clients[alias], topic, since, wanted)
        except (KafkaOperationError, TimeoutError) as error:
            # Only latency is missing then.
            logger.warning("the timeline cannot be read: %s", error)

    def _drop_unread(self) -> None:
        """Leave out units of which a partition gave no offset."""

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
                        detail = f"{key} on {alias} gave no offset ({kind})"
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


def _feeds(flow: FlowConfig) -> Callable[[Unit], bool]:
    return lambda unit: any(feed.flow.label == flow.label for feed in unit.feeds)


def _on(alias: str) -> Callable[[Unit], bool]:
    return lambda unit: unit.cluster == alias


def _refusal(
    error: Exception, concerns: Callable[[Unit], bool], each: ReachableUnit
) -> NotAudited | None:
    return failed(each.unit.topic, error, each.unit.flows) if concerns(each.unit) else None
