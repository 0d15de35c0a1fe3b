"""Arrival polls of what is read, from the watermark timeline of both sides (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mm2slo_core.audit.audit_scope import ArrivalPoll, UnitScope
from mm2slo_core.records.timeline_record import Side, WatermarkRecord
from mm2slo_core.topology import Flow

TimelineKey = tuple["Flow", Side, str]
"""Flow, side, and topic name on that side."""


class TopicTimeline:
    """Timeline of one topic on one side, from the exporter of one flow."""

    def __init__(self) -> None:
        self.partitions: defaultdict[int, PartitionTimeline] = defaultdict(PartitionTimeline)
        self.recreated_between: tuple[float, float] | None = None
        """Times of the last poll before and the first after a re-creation of the topic, epoch s."""
        self.topic_id: str | None = None
        self._seen_at: float | None = None

    def add(self, record: WatermarkRecord) -> None:
        """Add the next record. Another topic id drops all earlier ones."""
        times = record.times
        if record.topic_id is not None:
            if self.topic_id not in (None, record.topic_id) and self._seen_at is not None:
                self.partitions.clear()
                self.recreated_between = (self._seen_at, times.answered_at)
            self.topic_id = record.topic_id
        self._seen_at = times.requested_at
        seen_before = None
        if times.previous_requested_at is not None and times.previous_answered_at is not None:
            seen_before = times.previous_requested_at, times.previous_answered_at
        for index, number in enumerate(record.partitions):
            held = self.partitions[number]
            arrived = record.arrived[index] if record.arrived else None
            if arrived is not None and seen_before is not None:
                # The previous poll was not written: the topic has only what arrived.
                held.add_poll(record.ends[index] - arrived, *seen_before, None)
            held.add_poll(
                record.ends[index],
                times.requested_at,
                times.answered_at,
                times.previous_requested_at,
            )
            start = record.log_starts[index] if record.log_starts else None
            if start is not None:
                held.add_start(times.answered_at, start)
            of_flow = (record.committed, record.sync_upstreams)
            copied = [
                offset for column in of_flow if column and (offset := column[index]) is not None
            ]
            if copied:
                held.add_position(times.answered_at, max(copied) + 1)

    def count_polls(self) -> int:
        return sum(len(held.polls) for held in self.partitions.values())

    def join_polls(self, width: int) -> None:
        """Join neighbouring brackets unless they become wider than *width* (ms)."""
        for held in self.partitions.values():
            held.join_polls(width)


def collect_arrival_polls(
    scopes: Sequence[UnitScope],
    timelines: Mapping[TimelineKey, TopicTimeline],
    arrivals: Mapping[TimelineKey, TopicTimeline],
) -> tuple[ArrivalPoll, ...]:
    """The polls of all offsets that are read; target polls of a unit's flows are merged.

    *arrivals*: of the arrivals topic, which has target polls only.
    """
    return tuple(poll for scope in scopes for poll in _unit_polls(scope, timelines, arrivals))


def _unit_polls(
    scope: UnitScope,
    timelines: Mapping[TimelineKey, TopicTimeline],
    arrivals: Mapping[TimelineKey, TopicTimeline],
) -> Iterator[ArrivalPoll]:
    for index, flow in enumerate(scope.flows):
        timeline = timelines.get((flow.flow, Side.SOURCE, flow.source_topic))
        if timeline is not None:
            for source in flow.partitions:
                if (held := timeline.partitions.get(source.partition)) is not None:
                    polls = _select_polls(held.polls, source.read_from, source.end)
                    yield from _arrival_polls(
                        scope.index, index, Side.SOURCE, source.partition, polls
                    )
    of_target = [
        timeline
        for flow in scope.flows
        for timeline in _timelines_of_same_log(
            (flow.flow, Side.TARGET, scope.target_topic), timelines, arrivals
        )
    ]
    for target in scope.partitions:
        known = [
            held.polls
            for timeline in of_target
            if (held := timeline.partitions.get(target.partition)) is not None
        ]
        polls = _select_polls(merge_polls(known), target.read_from, target.end)
        yield from _arrival_polls(scope.index, 0, Side.TARGET, target.partition, polls)


def _timelines_of_same_log(
    key: TimelineKey, *sources: Mapping[TimelineKey, TopicTimeline]
) -> Iterator[TopicTimeline]:
    """The timelines of a topic, without that of an earlier topic of the same name."""
    found = [source[key] for source in sources if key in source]
    return (each for each in found if each.topic_id in (None, found[0].topic_id))


def merge_polls(lists: Sequence[Sequence[Poll]]) -> Sequence[Poll]:
    """The intersection of the brackets in *lists*, each ordered by end."""
    if len(lists) == 1:
        return lists[0]
    merged: list[Poll] = []
    places = [0] * len(lists)
    for end in sorted({poll.end for polls in lists for poll in polls}):
        brackets = []
        for index, polls in enumerate(lists):
            while places[index] < len(polls) and polls[places[index]].end < end:
                places[index] += 1
            if places[index] < len(polls):
                brackets.append(polls[places[index]])
        first = min(brackets, key=lambda poll: poll.latest)
        earliest = max(
            (poll.earliest for poll in brackets if poll.earliest is not None), default=None
        )
        if earliest is not None and earliest > first.latest:
            earliest = first.earliest  # writers with different clocks
        merged.append(Poll(end, earliest, first.latest))
    return merged


def _select_polls(polls: Sequence[Poll], read_from: int, end: int) -> Iterator[Poll]:
    """Polls that bracket an offset in [read_from, end)."""
    before = read_from
    for poll in polls:
        if before >= end:
            return
        if poll.end > read_from:
            yield poll
        before = max(before, poll.end)


def _arrival_polls(
    unit: int, flow: int, side: Side, partition: int, polls: Iterable[Poll]
) -> Iterator[ArrivalPoll]:
    for poll in polls:
        yield ArrivalPoll(unit, flow, side, partition, poll.end, poll.earliest, poll.latest)


class Poll(NamedTuple):
    """The first poll that saw *end*: its new records arrived within [earliest, latest], epoch ms.

    *earliest* None: there was no earlier poll.
    """

    end: int
    earliest: int | None
    latest: int


class TimedValue(NamedTuple):
    """A value from *at* (epoch s) until the next one."""

    at: float
    value: int


class PartitionTimeline:
    """Polls, log starts and positions of one partition, only where they change.

    A poll without a new end brackets no record and can be left out.
    """

    __slots__ = ("_polled_at", "_width", "polls", "positions", "starts")

    def __init__(self) -> None:
        self._width = 0
        self.polls: list[Poll] = []
        self.starts: list[TimedValue] = []
        self.positions: list[TimedValue] = []
        self._polled_at: float | None = None

    def add_poll(
        self, end: int, requested_at: float, answered_at: float, previous: float | None
    ) -> None:
        """Add the next poll, with the request time of the previous poll if known.

        It is unknown in a writer's first record, which counts from the record before it. A lower
        end is a truncation: polls of the offsets beyond it are dropped.
        """
        if self.polls and end < self.polls[-1].end:
            self.polls = [poll for poll in self.polls if poll.end <= end]
        if not self.polls or end > self.polls[-1].end:
            known = [at for at in (previous, self._polled_at) if at is not None]
            earliest = _milliseconds(max(known)) if known else None
            self._append(Poll(end, earliest, _milliseconds(answered_at)))
        self._polled_at = requested_at

    def join_polls(self, width: int) -> None:
        """Join neighbouring brackets, now and later, unless they become wider than *width* (ms)."""
        self._width = width
        polls, self.polls = self.polls, []
        for poll in polls:
            self._append(poll)

    def _append(self, poll: Poll) -> None:
        before = self.polls[-1].earliest if self.polls else None
        if before is not None and poll.latest - before <= self._width:
            self.polls.pop()
            poll = poll._replace(earliest=before)
        self.polls.append(poll)

    def add_start(self, at: float, log_start: int) -> None:
        _append_change(self.starts, at, log_start)

    def add_position(self, at: float, next_offset: int) -> None:
        """Add the first offset not known to be copied."""
        _append_change(self.positions, at, next_offset)


@lru_cache(maxsize=16)
def _milliseconds(at: float) -> int:
    """One object for all partitions of a poll: a third less memory."""
    return round(at * 1000)


def _append_change(figures: list[TimedValue], at: float, value: int) -> None:
    if not figures or figures[-1].value != value:
        figures.append(TimedValue(at, value))
