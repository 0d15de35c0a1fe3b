"""Collects timeline records per flow, side and topic into arrival polls (pure)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mm2slo_audit.scope.partition_timeline import PartitionTimeline, Poll
from mm2slo_core.audit.audit_record import ArrivalPoll
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.timeline_record import WatermarkRecord
    from mm2slo_core.topology import Flow

TimelineKey = tuple["Flow", Side, str]
"""Flow, side, and topic name on that side."""


class TopicTimeline:
    """Timeline of one topic on one side, from the exporter of one flow."""

    def __init__(self) -> None:
        self.partitions: defaultdict[int, PartitionTimeline] = defaultdict(PartitionTimeline)
        self.recreated_between: tuple[float, float] | None = None
        """Times of the last poll before and the first after a re-creation of the topic, epoch s."""
        self._topic_id: str | None = None
        self._seen_at: float | None = None

    def add(self, record: WatermarkRecord) -> None:
        """Add the next record. Another topic id drops all earlier ones."""
        times = record.times
        if record.topic_id is not None:
            if self._topic_id not in (None, record.topic_id) and self._seen_at is not None:
                self.partitions.clear()
                self.recreated_between = (self._seen_at, times.answered_at)
            self._topic_id = record.topic_id
        self._seen_at = times.requested_at
        for index, number in enumerate(record.partitions):
            held = self.partitions[number]
            held.add_poll(
                record.ends[index],
                times.requested_at,
                times.answered_at,
                times.previous_requested_at,
            )
            start = record.log_starts[index] if record.log_starts else None
            if start is not None:
                held.add_start(times.answered_at, start)
            copied = [
                column[index]
                for column in (record.committed, record.sync_upstreams)
                if column and column[index] is not None
            ]
            if copied:
                held.add_position(times.answered_at, max(o for o in copied if o is not None) + 1)


def collect_arrival_polls(
    scopes: Sequence[UnitScope], timelines: Mapping[TimelineKey, TopicTimeline]
) -> tuple[ArrivalPoll, ...]:
    """The polls of all offsets that are read; target polls of a unit's flows are merged."""
    return tuple(poll for scope in scopes for poll in _of_unit(scope, timelines))


def _of_unit(
    scope: UnitScope, timelines: Mapping[TimelineKey, TopicTimeline]
) -> Iterator[ArrivalPoll]:
    for index, flow in enumerate(scope.flows):
        timeline = timelines.get((flow.flow, Side.SOURCE, flow.source_topic))
        if timeline is not None:
            for source in flow.partitions:
                if (held := timeline.partitions.get(source.partition)) is not None:
                    polls = _within(held.polls, source.read_from, source.end)
                    yield from _rows(scope.index, index, Side.SOURCE, source.partition, polls)
    of_target = [
        timelines[key]
        for flow in scope.flows
        if (key := (flow.flow, Side.TARGET, scope.target_topic)) in timelines
    ]
    for target in scope.partitions:
        every = [
            poll
            for timeline in of_target
            if (held := timeline.partitions.get(target.partition)) is not None
            for poll in held.polls
        ]
        if len(of_target) > 1:
            every = merge_polls(every)
        polls = _within(every, target.read_from, target.end)
        yield from _rows(scope.index, 0, Side.TARGET, target.partition, polls)


def merge_polls(polls: Iterable[Poll]) -> list[Poll]:
    """Merge the polls of several writers; polls without a new end are dropped."""
    kept: list[Poll] = []
    for poll in sorted(polls, key=lambda each: (each.latest, -each.end)):
        if not kept or poll.end > kept[-1].end:
            kept.append(poll)
    return kept


def _within(polls: Sequence[Poll], read_from: int, end: int) -> Iterator[Poll]:
    """Polls that bracket an offset in [read_from, end)."""
    before = read_from
    for poll in polls:
        if before >= end:
            return
        if poll.end > read_from:
            yield poll
        before = max(before, poll.end)


def _rows(
    unit: int, flow: int, side: Side, partition: int, polls: Iterable[Poll]
) -> Iterator[ArrivalPoll]:
    for poll in polls:
        yield ArrivalPoll(unit, flow, side, partition, poll.end, poll.earliest, poll.latest)
