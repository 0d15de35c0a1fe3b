"""The scopes of a run, and how readings of both clusters become the scope of a unit (pure).

Bounds of a scope follow from log starts: initially, and again after retention. A copy map takes
offsets of a source partition to those of its copies, to bound what can be judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from mm2slo_audit.scope.arrival_polls import TopicTimeline
from mm2slo_audit.scope.audit_units import AuditUnit, Feed
from mm2slo_audit.scope.cluster_readings import TopicSettings
from mm2slo_audit.scope.flow_topic_reader import CommitsAndSyncs
from mm2slo_audit.scope.sync_history import (
    KnownPosition,
    SyncHistory,
    TimedSync,
    build_sync_runs,
    find_cuts,
    find_known_position,
)
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    Comparison,
    FlowScope,
    NotAudited,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, common_identity
from mm2slo_core.config.exporter_settings import Engine
from mm2slo_core.config.exporter_settings import Isolation as FlowIsolation
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.offset_translation import SyncRuns
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.partition_offsets import Isolation, OffsetReading


@dataclass(frozen=True, slots=True)
class Isolations:
    """Isolation levels of a unit; sources per flow."""

    sources: tuple[Isolation, ...]
    target: Isolation


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run can judge, and topics that it cannot. A scope's `index` is its place here."""

    scopes: tuple[UnitScope, ...]
    not_audited: tuple[NotAudited, ...] = ()
    polls: tuple[ArrivalPoll, ...] = ()
    isolations: tuple[Isolations, ...] = ()
    """Per scope."""
    copies: tuple[Mapping[CopyKey, CopyMap], ...] = field(default=(), repr=False)
    """Per scope: data to recompute its bounds when retention moves log starts."""
    notes: tuple[str, ...] = ()
    """Sentences on running connectors that differ from the configuration."""
    complete_up_to: int | None = None
    """Of an incremental run: epoch ms up to which all topics were complete before it."""

    @property
    def planned(self) -> int:
        """Offsets to read on both sides; an upper bound of the records."""
        return sum(scope.planned for scope in self.scopes)

    @property
    def restarting_completion(self) -> frozenset[int]:
        """Indexes of scopes whose sources have no records before the window any more."""
        return frozenset(
            scope.index
            for scope in self.scopes
            if all(
                each.read_from == each.log_start for flow in scope.flows for each in flow.partitions
            )
        )

    def without(self, indexes: Collection[int]) -> Self:
        """All but the scopes *indexes*; the others get new indexes."""
        kept = [scope.index for scope in self.scopes if scope.index not in indexes]
        place = {index: number for number, index in enumerate(kept)}
        return replace(
            self,
            scopes=tuple(replace(self.scopes[index], index=place[index]) for index in kept),
            polls=tuple(
                replace(poll, topic=place[poll.topic]) for poll in self.polls if poll.topic in place
            ),
            isolations=tuple(self.isolations[index] for index in kept),
            copies=tuple(self.copies[index] for index in kept),
        )


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

    unit: AuditUnit
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
        # Each transaction ends with a marker that takes an offset (KIP-98).
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
    identity, comparison = _unit_identity(read), _unit_comparison(read)
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
        committed=positions.next_offset is not None,
        dense=read.dense,
        source_end=feed.readings.ends[feed.key(partition)],
        target_end=target_end,
        at_source_start=feed.at_source_start.get(partition),
        at_target_start=feed.at_target_start.get(partition),
    )


def _unit_identity(read: UnitReading) -> Identity:
    # A copy does not show its flow: a field that one flow changes is ignored for all.
    identity = common_identity([each.feed.flow.audit.identity.identity for each in read.feeds])
    if read.kind.timestamps is TimestampType.LOG_APPEND:
        # The target's broker replaces the timestamp that MirrorMaker 2 sends (KIP-32).
        return identity.without_timestamp()
    return identity


def _unit_comparison(read: UnitReading) -> Comparison:
    if read.kind.compacted or any(feed.kind.compacted for feed in read.feeds):
        return Comparison.LATEST
    if any(feed.partitions != read.partitions for feed in read.feeds):
        return Comparison.KEYS
    return Comparison.RECORDS


COMMITTED: Isolation = "read_committed"
UNCOMMITTED: Isolation = "read_uncommitted"


def source_isolation(flow: FlowConfig) -> Isolation:
    """The isolation level of MirrorMaker 2: records that it does not read are not missing."""
    # MirrorSourceConnector.exactlyOnceSupport is SUPPORTED only if its consumer reads committed.
    if flow.exactly_once or flow.isolation is FlowIsolation.READ_COMMITTED:
        return COMMITTED
    return UNCOMMITTED


def target_isolation(unit: AuditUnit) -> Isolation:
    """read_committed for exactly-once flows: their copies count once committed."""
    exactly_once = any(feed.flow.exactly_once for feed in unit.feeds)
    return COMMITTED if exactly_once else UNCOMMITTED


@dataclass(slots=True)
class OffsetReadings:
    """Offsets per partition of one cluster; `errors` has partitions that failed."""

    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    at: dict[TopicPartition, int] = field(default_factory=dict)
    """The first offset at or after the window's start."""
    errors: dict[TopicPartition, ErrorKind] = field(default_factory=dict)
    requested_at: float = 0.0
    """Request time of the end offsets, epoch s."""

    def add_ends(self, reading: OffsetReading) -> None:
        self.ends |= reading.offsets
        self.errors |= reading.errors
        self.requested_at = reading.requested_at

    def add_starts(self, reading: OffsetReading) -> None:
        self.starts |= reading.offsets
        self.errors |= reading.errors

    def add_window_starts(self, reading: OffsetReading) -> None:
        self.at |= reading.offsets
        self.errors |= reading.errors


def partitions_of(topics: Iterable[str], counts: Mapping[str, int]) -> Sequence[TopicPartition]:
    """All partitions of the *topics* that exist."""
    return [
        TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))
    ]


CopyKey = tuple[int, int]
"""Flow index within the unit, and partition."""

Starts = dict[int, int]
"""Log start by partition."""


def apply_bounds(scope: UnitScope, copies: Mapping[CopyKey, CopyMap]) -> UnitScope:
    """Set `known_from` and `auditable_from` from the log starts."""
    # Another engine with another partition count may copy to any partition: use the highest start.
    anywhere = not scope.flows[0].has_positions and any(
        len(flow.partitions) != len(scope.partitions) for flow in scope.flows
    )
    starts = {each.partition: each.log_start for each in scope.partitions}
    if anywhere:
        highest = max(starts.values(), default=0)
        starts = {each.partition: highest for flow in scope.flows for each in flow.partitions}
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _with_known_from(each, copies.get((index, each.partition)), starts)
                for each in flow.partitions
            ),
        )
        for index, flow in enumerate(scope.flows)
    )
    floors: Starts = {}
    for index, flow in enumerate(flows):
        for source in flow.partitions:
            copy = copies.get((index, source.partition))
            if copy is not None:
                floor = copy.auditable_from(_first_readable(source, copy, scope))
                floors[source.partition] = max(floor, floors.get(source.partition, 0))
    if anywhere:
        removed = any(each.log_start for flow in flows for each in flow.partitions)
        floors = {each.partition: each.end if removed else 0 for each in scope.partitions}
    return replace(
        scope,
        flows=flows,
        partitions=tuple(
            replace(each, auditable_from=floors.get(each.partition, 0)) for each in scope.partitions
        ),
    )


def apply_log_starts(
    scope: UnitScope,
    copies: Mapping[CopyKey, CopyMap],
    source_starts: Mapping[int, Starts],
    target_starts: Starts,
) -> UnitScope:
    """Apply moved log starts, by flow and partition and by target partition.

    Records below are not read, and their counterparts are not judged.
    """
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _raise_source_start(each, source_starts.get(index, {})) for each in flow.partitions
            ),
        )
        for index, flow in enumerate(scope.flows)
    )
    partitions = tuple(_raise_target_start(each, target_starts) for each in scope.partitions)
    return apply_bounds(replace(scope, flows=flows, partitions=partitions), copies)


def without_timestamps(scope: UnitScope, copies: Mapping[CopyKey, CopyMap]) -> UnitScope:
    """The scope for copies with timestamps of the target, although it has CreateTime now."""
    cut = (
        len(scope.flows) == 1
        and scope.comparison is Comparison.RECORDS
        and scope.flows[0].has_positions
    )
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _with_copied_cuts(each, copies.get((index, each.partition))) if cut else each
                for each in flow.partitions
            ),
        )
        for index, flow in enumerate(scope.flows)
    )
    partitions = tuple(
        replace(each, read_from=_first_copy(each, scope, copies)) for each in scope.partitions
    )
    identity = scope.identity.without_timestamp()
    return apply_bounds(
        replace(scope, flows=flows, partitions=partitions, identity=identity), copies
    )


def _with_copied_cuts(source: SourcePartition, copy: CopyMap | None) -> SourcePartition:
    if copy is None or copy.runs is None:
        return source
    found = find_cuts(
        [TimedSync(*point, at=0.0) for point in copy.runs.points()],
        dense=copy.dense,
        read=(source.read_from, source.end),
        target_end=copy.target_end,
    )
    return replace(source, cuts=found)


def _first_copy(
    target: TargetPartition, scope: UnitScope, copies: Mapping[CopyKey, CopyMap]
) -> int:
    """The lowest offset that a copy of a record that is read may have.

    Not the first offset of the window: the clock of the target may be behind that of producers.
    """
    reached = [
        _lower_target_offset(copies.get((index, each.partition)), each.read_from)
        for index, flow in enumerate(scope.flows)
        for each in flow.partitions
        if each.partition == target.partition
    ]
    if not reached or scope.comparison is Comparison.KEYS:
        return target.log_start
    return max(target.log_start, min(target.read_from, *reached))


def _lower_target_offset(copy: CopyMap | None, source_start: int) -> int:
    bounds = copy.runs.target_bounds(source_start) if copy is not None and copy.runs else None
    return 0 if bounds is None else bounds.lower


def _first_readable(source: SourcePartition, copy: CopyMap, scope: UnitScope) -> int:
    """The source offset from which a copy's record is among those read.

    If timestamps are kept, copies of records before the window are themselves before it.
    """
    stamped = not scope.identity.timestamp and copy.runs is not None
    return source.read_from if stamped else source.log_start


def _with_known_from(
    source: SourcePartition, copy: CopyMap | None, target_starts: Starts
) -> SourcePartition:
    if copy is None:
        return source
    start = target_starts.get(source.partition, 0)
    return replace(source, known_from=copy.judged_from(start))


def _raise_source_start(each: SourcePartition, starts: Starts) -> SourcePartition:
    start = max(each.log_start, starts.get(each.partition, 0))
    read_from = max(each.read_from, start)
    return replace(each, log_start=start, read_from=read_from, end=max(each.end, read_from))


def _raise_target_start(each: TargetPartition, starts: Starts) -> TargetPartition:
    start = max(each.log_start, starts.get(each.partition, 0))
    read_from = max(each.read_from, start)
    return replace(each, log_start=start, read_from=read_from, end=max(each.end, read_from))


@dataclass(frozen=True, slots=True)
class CopyMap:
    """A source partition and the target partition of the same number."""

    runs: SyncRuns | None
    """Runs of the source log's syncs; None: no syncs."""
    copies_start: int
    """Target offset where this log's copies start; lower ones may be of an earlier log."""
    known_from: int
    """As in `KnownPosition`."""
    dense: bool
    """Whether each target offset is one record of this flow."""
    source_end: int
    target_end: int
    committed: bool = False
    """Whether the position in this source log is known."""
    at_source_start: int | None = None
    """Target offset at the time of the source's first record, if looked up."""
    at_target_start: int | None = None
    """Source offset at the time of the target's first record, if looked up."""

    def auditable_from(self, source_start: int) -> int:
        """The first target offset whose source record is certainly at or above *source_start*."""
        if source_start == 0:
            return self.copies_start
        bounds = None if self.runs is None else self.runs.target_bounds(source_start)
        reached = self.at_source_start if bounds is None else bounds.upper
        reached = self.target_end if reached is None else min(reached, self.target_end)
        return max(self.copies_start, reached)

    def judged_from(self, target_start: int) -> int:
        """The first source offset whose copy the target cannot have removed."""
        if target_start == 0:
            # The target has removed no copy, so a record below the position without one was not
            # copied, or its copy was lost: wherever the flow started, and whatever syncs remain.
            return 0 if self.committed else self.known_from
        reached: int | None = self.at_target_start
        if self.runs is not None and len(self.runs):
            bounds = self.runs.upstream_bounds(target_start)
            if bounds is None:
                reached = next(self.runs.points())[0]
            elif bounds.upper is not None:
                reached = bounds.upper
            else:
                # After the last sync copies are contiguous, otherwise there would be another sync.
                reached = bounds.lower if self.dense else None
        reached = self.source_end if reached is None else min(reached, self.source_end)
        return max(self.known_from, reached)
