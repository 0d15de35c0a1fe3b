"""Draws the slices of a unit and brackets their copies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.slice_brackets import CopyEvidence, find_target_range
from mm2slo_core.audit.audit_scope import Comparison, SlicePlan
from mm2slo_core.audit.source_slices import OffsetRange, plan_slices
from mm2slo_kafka.record_slice import read_slice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_audit.scope.arrival_polls import TopicTimeline
    from mm2slo_audit.scope.unit_assembly import AssembledScope, FeedReading, UnitReading
    from mm2slo_core.audit.audit_scope import SourcePartition, UnitScope
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_kafka.cluster_client import ClusterClient

_PROBED_PARTITIONS: Final = 5
_PROBED_RECORDS: Final = 50
"""Per partition, for the mean size of records."""


def add_slices(
    read: UnitReading,
    made: AssembledScope,
    target: TopicTimeline | None,
    sample: Sample,
    clients: Mapping[str, ClusterClient],
) -> UnitScope:
    """The scope with slices, or with the reason why it is read completely.

    *target*: the timeline of the unit's topic. Raises KafkaOperationError, and UserError if the
    sample has too few slices.
    """
    scope = made.scope
    if reason := _why_census(scope):
        return replace(scope, sampled=SlicePlan((), 0.0, reason))
    feed = read.feeds[0]
    client = clients[feed.feed.flow.flow.source]
    (flow,) = scope.flows
    keys = [feed.key(each.partition) for each in flow.partitions]
    until = client.offsets_at(keys, scope.window.end / 1000).offsets
    ranges = [
        OffsetRange(each.partition, each.read_from, end)
        for each in flow.partitions
        if each.read_from < (end := min(each.end, until.get(feed.key(each.partition), each.end)))
    ]
    record_bytes = _mean_record_bytes(client, feed, ranges)
    drawn = plan_slices(scope.target_topic, ranges, record_bytes, sample)
    if not drawn:
        return replace(scope, sampled=SlicePlan((), record_bytes, "smaller than 30 slices"))
    known = {each.partition: _evidence(read, made, each, target) for each in flow.partitions}
    starts = {each.partition: each.log_start for each in scope.partitions}
    slices = []
    for each in drawn:
        found = find_target_range(each.start, each.end, known[each.partition])
        if found is not None:
            low = max(found[0], starts[each.partition])
            found = (low, max(low, found[1]))
        slices.append(each._replace(target=found))
    return _with_poll_range(replace(scope, sampled=SlicePlan(tuple(slices), record_bytes)))


def _why_census(scope: UnitScope) -> str:
    if scope.comparison is Comparison.LATEST:
        return "compacted"
    if scope.comparison is Comparison.KEYS:
        return "the partition counts differ"
    if not scope.identity.timestamp:
        return "timestamps are not compared, so copies of other equal records would match"
    if len(scope.flows) > 1:
        return "several flows feed it"
    return "" if scope.flows[0].has_positions else "no MirrorMaker 2 offsets"


def _mean_record_bytes(
    client: ClusterClient, feed: FeedReading, ranges: Sequence[OffsetRange]
) -> float:
    """Mean bytes of key and value, from the middle of the largest partitions."""
    sizes = [
        len(record.key or b"") + len(record.value or b"")
        for each in sorted(ranges, key=lambda one: one.start - one.end)[:_PROBED_PARTITIONS]
        for record in read_slice(
            client, feed.key(each.partition), (each.start + each.end) // 2, _PROBED_RECORDS
        )
    ]
    return max(1.0, sum(sizes) / len(sizes)) if sizes else 1.0


def _evidence(
    read: UnitReading, made: AssembledScope, source: SourcePartition, target: TopicTimeline | None
) -> CopyEvidence:
    feed, number = read.feeds[0], source.partition
    return CopyEvidence(
        syncs=made.positions[0, number].log_syncs,
        source=None if feed.timeline is None else feed.timeline.partitions.get(number),
        target=None if target is None else target.partitions.get(number),
        dense=read.dense,
        ends=(source.end, read.readings.ends[read.key(number)]),
        next_offset=source.next_offset,
    )


def _with_poll_range(scope: UnitScope) -> UnitScope:
    """Extend target ranges to all slices, so that arrival polls cover them."""
    lows = {each.partition: each.end for each in scope.partitions}
    for each in scope.slices:
        if each.target is not None:
            lows[each.partition] = min(lows[each.partition], each.target[0])
    return replace(
        scope,
        partitions=tuple(
            replace(each, read_from=lows[each.partition]) for each in scope.partitions
        ),
    )
