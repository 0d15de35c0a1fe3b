"""Corresponding offsets by time, for partitions without offset syncs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.scope.offset_lookups import read_first_timestamps, read_offsets_at
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
    unit: Unit,
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
