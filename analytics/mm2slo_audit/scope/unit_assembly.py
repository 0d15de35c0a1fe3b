"""Builds the scope of a unit from its readings (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mm2slo_audit.scope.cluster_topics import TopicSettings
from mm2slo_audit.scope.copy_map import CopyMap
from mm2slo_audit.scope.known_position import KnownPosition, find_known_position
from mm2slo_audit.scope.scope_bounds import apply_bounds
from mm2slo_audit.scope.sync_cuts import find_cuts
from mm2slo_audit.scope.sync_history import SyncHistory, build_sync_runs
from mm2slo_core.audit.audit_scope import (
    Comparison,
    FlowScope,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
)
from mm2slo_core.audit.record_identity import common_identity
from mm2slo_core.config.flow_config import Engine
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_audit.scope.arrival_polls import TopicTimeline
    from mm2slo_audit.scope.audit_units import Feed, Unit
    from mm2slo_audit.scope.commits_and_syncs import CommitsAndSyncs
    from mm2slo_audit.scope.offset_snapshot import OffsetReadings
    from mm2slo_audit.scope.scope_bounds import CopyKey
    from mm2slo_core.audit.audit_scope import Window
    from mm2slo_core.audit.record_identity import Identity


@dataclass(frozen=True, slots=True)
class FeedReading:
    """Readings of a flow's source topic; mappings are by partition."""

    feed: Feed
    partitions: int
    readings: OffsetReadings
    internals: CommitsAndSyncs
    timeline: TopicTimeline | None
    kind: TopicSettings = field(default_factory=TopicSettings)
    progress: Mapping[int, int] = field(default_factory=dict)
    """For flows without positions: source offset reached by the target, by time."""
    at_source_start: Mapping[int, int] = field(default_factory=dict)
    at_target_start: Mapping[int, int] = field(default_factory=dict)

    def key(self, partition: int) -> TopicPartition:
        """A source partition."""
        return TopicPartition(self.feed.topic, partition)

    @property
    def has_positions(self) -> bool:
        """Whether the flow writes offsets."""
        return self.feed.flow.engine is Engine.MIRRORMAKER2


@dataclass(frozen=True, slots=True)
class UnitReading:
    """Readings of a unit."""

    unit: Unit
    partitions: int
    readings: OffsetReadings
    feeds: tuple[FeedReading, ...]
    kind: TopicSettings = field(default_factory=TopicSettings)

    def key(self, partition: int) -> TopicPartition:
        """A target partition."""
        return TopicPartition(self.unit.topic, partition)

    @property
    def dense(self) -> bool:
        """Whether each target offset is a record of the only flow: no markers, no other flow."""
        return len(self.feeds) == 1 and not self.feeds[0].feed.flow.exactly_once


@dataclass(frozen=True, slots=True)
class AssembledScope:
    """A scope, and the data that its bounds depend on."""

    scope: UnitScope
    copies: Mapping[CopyKey, CopyMap]
    positions: Mapping[CopyKey, KnownPosition]


def assemble_scope(read: UnitReading, window: Window) -> AssembledScope:
    """Build the scope of a unit, without its index and expired counts.

    Of several flows the lowest `max_pending` counts.
    """
    positions: dict[CopyKey, KnownPosition] = {}
    copies: dict[CopyKey, CopyMap] = {}
    identity, comparison = _identity(read), _comparison(read)
    # Compared timestamps already distinguish equal records.
    cut = len(read.feeds) == 1 and comparison is Comparison.RECORDS and not identity.timestamp
    flows = []
    for index, feed in enumerate(read.feeds):
        partitions = []
        for number in range(feed.partitions):
            at = positions[index, number] = _find_position(feed, number)
            source = _source_partition(feed, number, at)
            partitions.append(_with_cuts(source, at, read) if cut else source)
            if number < read.partitions or not feed.has_positions:
                copies[index, number] = _copy_map(read, feed, number, at)
        flow = feed.feed.flow.flow
        kind = feed.kind.timestamps
        flows.append(FlowScope(flow, feed.feed.topic, tuple(partitions), kind, feed.has_positions))
    first = {each.partition: each for each in flows[0].partitions} if cut else {}
    pending = min(round(feed.feed.flow.audit.max_pending * 1000) for feed in read.feeds)
    scope = UnitScope(
        index=0,
        target_topic=read.unit.topic,
        flows=tuple(flows),
        partitions=tuple(
            _target_partition(read, number, first.get(number)) for number in range(read.partitions)
        ),
        window=window,
        identity=identity,
        comparison=comparison,
        target_time=read.kind.timestamps,
        taken_at=round(max(feed.readings.requested_at for feed in read.feeds) * 1000),
        max_pending=pending,
        tombstones_kept=read.kind.tombstones_kept if comparison is Comparison.LATEST else 0,
    )
    return AssembledScope(apply_bounds(scope, copies), copies, positions)


def _find_position(feed: FeedReading, partition: int) -> KnownPosition:
    key = feed.key(partition)
    if not feed.has_positions:
        reached = feed.progress.get(partition)
        return KnownPosition(reached, reached, 0, (), replaced=False)
    timeline = feed.timeline
    held = None if timeline is None else timeline.partitions.get(partition)
    return find_known_position(
        feed.internals.commits.get(key),
        feed.internals.syncs.get(key, SyncHistory()).points,
        source_end=feed.readings.ends[key],
        recreated_between=None if timeline is None else timeline.recreated_between,
        oldest_position=held.positions[0].value if held is not None and held.positions else None,
    )


def _source_partition(
    feed: FeedReading, partition: int, positions: KnownPosition
) -> SourcePartition:
    key, readings = feed.key(partition), feed.readings
    start = readings.starts[key]
    end = max(start, readings.ends[key])  # all records may have been removed in between
    return SourcePartition(
        partition=partition,
        log_start=start,
        read_from=max(start, min(readings.at[key], end)),
        end=end,
        next_offset=positions.next_offset,
        known_from=positions.known_from,
    )


def _with_cuts(
    source: SourcePartition, positions: KnownPosition, read: UnitReading
) -> SourcePartition:
    found = find_cuts(
        positions.log_syncs,
        dense=read.dense,
        read=(source.read_from, source.end),
        target_end=read.readings.ends[read.key(source.partition)],
    )
    return replace(source, cuts=found)


def _target_partition(
    read: UnitReading, partition: int, source: SourcePartition | None
) -> TargetPartition:
    """With cuts of the only *source*, copies of records before its read range are left out."""
    key, readings = read.key(partition), read.readings
    start = readings.starts[key]
    end = max(start, readings.ends[key])
    at = readings.at[key]
    if source is not None and source.cuts and source.cuts[0].upstream <= source.read_from:
        at = max(at, source.cuts[0].downstream)
    return TargetPartition(
        partition=partition,
        log_start=start,
        read_from=max(start, min(at, end)),
        end=end,
    )


def _copy_map(
    read: UnitReading, feed: FeedReading, partition: int, positions: KnownPosition
) -> CopyMap:
    # For flows without positions the target may have no partition of this number.
    target_end = read.readings.ends.get(read.key(partition), 0)
    copies_start = 0
    if positions.replaced:
        copies_start = positions.log_syncs[0].downstream if positions.log_syncs else target_end
    return CopyMap(
        runs=build_sync_runs(positions.log_syncs, dense=read.dense)
        if positions.log_syncs
        else None,
        copies_start=copies_start,
        known_from=positions.known_from,
        dense=read.dense,
        source_end=feed.readings.ends[feed.key(partition)],
        target_end=target_end,
        at_source_start=feed.at_source_start.get(partition),
        at_target_start=feed.at_target_start.get(partition),
    )


def _identity(read: UnitReading) -> Identity:
    # A copy does not show its flow: a field that one flow changes is ignored for all.
    identity = common_identity([each.feed.flow.audit.identity.identity for each in read.feeds])
    if read.kind.timestamps is TimestampType.LOG_APPEND:
        return identity.without_timestamp()
    return identity


def _comparison(read: UnitReading) -> Comparison:
    if read.kind.compacted or any(feed.kind.compacted for feed in read.feeds):
        return Comparison.LATEST
    if any(feed.partitions != read.partitions for feed in read.feeds):
        return Comparison.KEYS
    return Comparison.RECORDS
