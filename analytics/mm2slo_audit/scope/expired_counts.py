"""How many records of the window left the source before they were copied."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_audit.scope.expired_ranges import PartitionState, count_arrived_in, find_expired_ranges
from mm2slo_audit.scope.offset_lookups import first_timestamps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_audit.scope.expired_ranges import ExpiredRange
    from mm2slo_audit.scope.scope_bounds import CopyKey
    from mm2slo_audit.scope.unit_assembly import AssembledScope, FeedReading, UnitReading
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient

_SLACK_SECONDS: Final = 5.0


class _Open(NamedTuple):
    """*size* records of a range, whose time follows from the record after it."""

    key: CopyKey
    expired: ExpiredRange
    size: int


def add_expired_counts(
    read: UnitReading, made: AssembledScope, clients: Mapping[str, ClusterClient]
) -> UnitScope:
    """The scope with `expired` of each source partition. Raises KafkaOperationError.

    By arrival on the source where the timeline tells it; else a range counts when the first record
    that survived it is of the window.
    """
    counts: dict[CopyKey, int] = {}
    unknown: list[_Open] = []
    for index, feed in enumerate(read.feeds):
        for number in range(feed.partitions) if feed.has_positions else ():
            key = (index, number)
            timeline = None if feed.timeline is None else feed.timeline.partitions.get(number)
            present = _present(read, made, key)
            for expired in find_expired_ranges(
                made.known[key].epoch,
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
                    unknown.append(_Open(key, expired, rest))
    while unknown:
        # One record of a partition per request.
        once = {each.key: each for each in reversed(unknown)}
        unknown = [each for each in unknown if once[each.key] is not each]
        for each in _of_window(read, made, tuple(once.values()), clients):
            counts[each.key] = counts.get(each.key, 0) + each.size
    return _counted(made.scope, counts)


def _present(read: UnitReading, made: AssembledScope, key: CopyKey) -> PartitionState:
    index, number = key
    feed = read.feeds[index]
    readings, here = feed.readings, feed.key(number)
    known = made.known[key]
    copied_to = None
    if read.dense and number < read.partitions and known.epoch:
        last = known.epoch[-1]
        reached = last.upstream + read.readings.ends[read.key(number)] - last.downstream
        # Beyond the source's end it says that others write the target.
        copied_to = reached if last.upstream < reached <= readings.ends[here] else None
    return PartitionState(
        at=readings.requested_at,
        log_start=readings.starts[here],
        source_end=readings.ends[here],
        next_offset=known.next_offset,
        copied_to=copied_to,
    )


def _position_period(feed: FeedReading) -> float:
    flow = feed.feed.flow
    # A transaction holds records and offsets alike.
    return 0.0 if flow.exactly_once else flow.offset_flush_interval + _SLACK_SECONDS


def _of_window(
    read: UnitReading,
    made: AssembledScope,
    opened: tuple[_Open, ...],
    clients: Mapping[str, ClusterClient],
) -> Iterator[_Open]:
    """Those whose first survivor is of the window."""
    sources: dict[str, dict[TopicPartition, tuple[int, int]]] = {}
    targets: dict[TopicPartition, tuple[int, int]] = {}
    for key, expired, _size in opened:
        feed = read.feeds[key[0]]
        here, there = feed.key(key[1]), read.key(key[1])
        start, end = feed.readings.starts[here], feed.readings.ends[here]
        if expired.end < start and expired.next_copy is not None:
            targets[there] = (expired.next_copy, read.readings.ends[there])
        elif max(start, expired.end) < end:
            of_feed = sources.setdefault(feed.feed.flow.flow.source, {})
            of_feed[here] = (max(start, expired.end), end)
        elif there in read.readings.ends:
            # Nothing survived: then it came after the last copy.
            last = read.readings.ends[there]
            targets[there] = (max(0, last - 1), last)
    at_source = {alias: first_timestamps(clients[alias], of) for alias, of in sources.items()}
    at_target = first_timestamps(clients[read.unit.cluster], targets)
    window = made.scope.window
    for each in opened:
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


def _counted(scope: UnitScope, counts: Mapping[CopyKey, int]) -> UnitScope:
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
