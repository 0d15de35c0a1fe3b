"""Counts records of the window that expired before they were replicated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_audit.scope.expired_ranges import PartitionState, count_arrived_in, find_expired_ranges
from mm2slo_audit.scope.offset_lookups import read_first_timestamps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_audit.scope.expired_ranges import ExpiredRange
    from mm2slo_audit.scope.scope_bounds import CopyKey
    from mm2slo_audit.scope.unit_assembly import AssembledScope, FeedReading, UnitReading
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient

_SLACK_SECONDS: Final = 5.0


class _Undated(NamedTuple):
    """*size* records of a range with unknown arrival: the record after it decides."""

    key: CopyKey
    expired: ExpiredRange
    size: int


def add_expired_counts(
    read: UnitReading, made: AssembledScope, clients: Mapping[str, ClusterClient]
) -> UnitScope:
    """Set `expired` of each source partition. Raises KafkaOperationError.

    Records count by their arrival if the timeline has it; otherwise a range counts if the first
    record after it is in the window.
    """
    counts: dict[CopyKey, int] = {}
    unknown: list[_Undated] = []
    for index, feed in enumerate(read.feeds):
        for number in range(feed.partitions) if feed.has_positions else ():
            key = (index, number)
            timeline = None if feed.timeline is None else feed.timeline.partitions.get(number)
            present = _present(read, made, key)
            for expired in find_expired_ranges(
                made.positions[key].log_syncs,
                timeline,
                present,
                dense=read.dense,
                position_period=_position_period(feed),
            ):
                counted, rest = 0, expired.end - expired.start
                if timeline is not None:
                    counted, rest = count_arrived_in(expired, timeline, made.scope.window, present)
                counts[key] = counts.get(key, 0) + counted
                if rest:
                    unknown.append(_Undated(key, expired, rest))
    while unknown:
        # One record of a partition per request.
        once = {each.key: each for each in reversed(unknown)}
        unknown = [each for each in unknown if once[each.key] is not each]
        for each in _in_window(read, made, tuple(once.values()), clients):
            counts[each.key] = counts.get(each.key, 0) + each.size
    return _with_counts(made.scope, counts)


def _present(read: UnitReading, made: AssembledScope, key: CopyKey) -> PartitionState:
    index, number = key
    feed = read.feeds[index]
    readings, here = feed.readings, feed.key(number)
    known = made.positions[key]
    copied_to = None
    if read.dense and number < read.partitions and known.log_syncs:
        last = known.log_syncs[-1]
        reached = last.upstream + read.readings.ends[read.key(number)] - last.downstream
        # A value beyond the source's end means that the target has other writers.
        copied_to = reached if last.upstream < reached <= readings.ends[here] else None
    return PartitionState(
        at=readings.requested_at,
        log_start=readings.starts[here],
        source_end=readings.ends[here],
        reached=known.reached,
        copied_to=copied_to,
    )


def _position_period(feed: FeedReading) -> float:
    flow = feed.feed.flow
    # A transaction contains records and offsets.
    return 0.0 if flow.exactly_once else flow.offset_flush_interval + _SLACK_SECONDS


def _in_window(
    read: UnitReading,
    made: AssembledScope,
    undated: tuple[_Undated, ...],
    clients: Mapping[str, ClusterClient],
) -> Iterator[_Undated]:
    """Ranges whose first remaining record is in the window."""
    sources: dict[str, dict[TopicPartition, tuple[int, int]]] = {}
    targets: dict[TopicPartition, tuple[int, int]] = {}
    for key, expired, _size in undated:
        feed = read.feeds[key[0]]
        here, there = feed.key(key[1]), read.key(key[1])
        start, end = feed.readings.starts[here], feed.readings.ends[here]
        if expired.end < start and expired.next_copy is not None:
            targets[there] = (expired.next_copy, read.readings.ends[there])
        elif max(start, expired.end) < end:
            of_feed = sources.setdefault(feed.feed.flow.flow.source, {})
            of_feed[here] = (max(start, expired.end), end)
        elif there in read.readings.ends:
            # No record remains: the range came after the last copy.
            last = read.readings.ends[there]
            targets[there] = (max(0, last - 1), last)
    at_source = {alias: read_first_timestamps(clients[alias], of) for alias, of in sources.items()}
    at_target = read_first_timestamps(clients[read.unit.cluster], targets)
    window = made.scope.window
    for each in undated:
        feed = read.feeds[each.key[0]]
        here, there = feed.key(each.key[1]), read.key(each.key[1])
        alias = feed.feed.flow.flow.source
        if here in sources.get(alias, {}):
            moment = at_source[alias].get(here)
            of_window = moment is None or window.contains(moment)
        elif each.expired.next_copy is not None:
            moment = at_target.get(there)
            of_window = moment is None or window.contains(moment)
        else:
            moment = at_target.get(there)
            of_window = moment is None or moment < window.end
        if of_window:
            yield each


def _with_counts(scope: UnitScope, counts: Mapping[CopyKey, int]) -> UnitScope:
    return replace(
        scope,
        flows=tuple(
            replace(
                flow,
                partitions=tuple(
                    replace(each, expired=counts.get((index, each.partition), 0))
                    for each in flow.partitions
                ),
            )
            for index, flow in enumerate(scope.flows)
        ),
    )
