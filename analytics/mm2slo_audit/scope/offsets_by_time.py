"""Offsets by time, where nothing tells which record of one side is which of the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.scope.offset_lookups import first_timestamps, offsets_at
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_audit.scope.audit_units import Unit
    from mm2slo_audit.scope.offset_snapshot import OffsetReadings
    from mm2slo_audit.scope.unit_assembly import FeedReading
    from mm2slo_kafka.cluster_client import ClusterClient


def add_offsets_by_time(
    feed: FeedReading,
    unit: Unit,
    partitions: int,
    target: OffsetReadings,
    clients: Mapping[str, ClusterClient],
) -> FeedReading:
    """*feed* with the offsets that log starts and progress have on the other side by their time.

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
    # Another engine with other partitions may copy from any to any.
    anywhere = not feed.has_positions and feed.partitions != partitions
    cut = {
        key: (target.starts[key], target.ends[key])
        for number in (range(partitions) if anywhere else without)
        if target.starts[key := TopicPartition(unit.topic, number)]
    }
    # Too much is left unjudged rather than called a fault.
    at_source_start = offsets_at(
        there, _renamed(first_timestamps(here, removed), unit.topic), at_least=True
    )
    started = _renamed(first_timestamps(there, cut), feed.feed.topic)
    if anywhere:
        started = _of_all(feed, started) if len(started) == len(cut) else {}
    at_target_start = offsets_at(here, started, at_least=True)
    return replace(
        feed,
        at_source_start=_by_number(at_source_start),
        at_target_start=_by_number(at_target_start),
        progress={} if feed.has_positions else _progress(feed, unit, partitions, target, clients),
    )


def _progress(
    feed: FeedReading,
    unit: Unit,
    partitions: int,
    target: OffsetReadings,
    clients: Mapping[str, ClusterClient],
) -> Mapping[int, int]:
    """Source offsets older, by the patience, than the target's newest record.

    One from the future tells of no progress beyond the present.
    """
    last = {
        key: (max(target.starts[key], target.ends[key] - 1), target.ends[key])
        for number in range(partitions)
        if target.starts[key := TopicPartition(unit.topic, number)] < target.ends[key]
    }
    newest = first_timestamps(clients[unit.cluster], last)
    patience = round(feed.feed.flow.audit.max_pending * 1000)
    newest_of_all = max(newest.values(), default=None)
    present = round(feed.readings.requested_at * 1000)
    moments = {}
    for number in range(feed.partitions):
        there = TopicPartition(unit.topic, number)
        at = newest.get(there) if partitions == feed.partitions else newest_of_all
        if at is not None:
            moments[feed.key(number)] = min(at, present) - patience
    return _by_number(offsets_at(clients[feed.feed.flow.flow.source], moments))


def _renamed(moments: Mapping[TopicPartition, int], topic: str) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, key.partition): at for key, at in moments.items()}


def _of_all(feed: FeedReading, started: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """For each source partition the latest of the moments at which target partitions start."""
    if not started:
        return {}
    latest = max(started.values())
    return {feed.key(number): latest for number in range(feed.partitions)}


def _by_number(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {key.partition: offset for key, offset in offsets.items()}
